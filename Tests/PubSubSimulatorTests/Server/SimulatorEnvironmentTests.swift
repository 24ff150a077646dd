import Foundation
import PubSubSimulator
import SimulatedOrg
import TestSupport
import Testing

@Suite("The simulator's environment for pipelines")
struct SimulatorEnvironmentTests {
  @Test("The CA's path is absolute, even with a relative state directory")
  func absolutePath() async throws {
    let directory = try TemporaryDirectory()
    let up = FileManager.default.currentDirectoryPath.split(separator: "/").map { _ in "../" }
    var configuration = SimulatorConfiguration()
    configuration.org.events = 1
    configuration.org.stateDirectory = up.joined() + directory.path.dropFirst()
    let server = try SimulatorServer(configuration: configuration) { Issue.record($0) }
    let addresses = try await server.start()
    let variables = server.environment(addresses).variables
    await server.stop()
    let file = try #require(variables.first { $0.name == "PUBSUB_CA_FILE" }).value
    #expect(file.hasPrefix("/"))
    #expect(FileManager.default.contentsEqual(atPath: file, andPath: addresses.caFile ?? ""))
  }

  @Test(
    "A shell reads the original values",
    arguments: [
      "", "plain", "it's", "it'\u{301}s", "'", "''\u{301}'", "a b", "$HOME `id` $(id)",
      "back\\slash",
      "new\nline", "\"x\"", "!", "'; exit 1; '\u{301}",
    ])
  func shell(value: String) throws {
    let environment = SimulatorEnvironment(variables: [("A", "first"), ("B", value), ("C", "last")])
    let process = Process()
    process.executableURL = URL(filePath: "/bin/sh")
    process.arguments = ["-c", environment.shellText + "printf '%s.%s.%s' \"$A\" \"$B\" \"$C\""]
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let bytes = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
    #expect(Array(bytes) == Array("first.\(value).last".utf8))
  }
}
