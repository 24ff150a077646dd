import Foundation
import TestSupport
import Testing

@Suite("pubsub-etl test", .enabled(if: ProofScript.programs != nil))
struct TestCommandTests {
  private static let pipelines = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().appending(path: "pipelines")

  private struct Result {
    var status: Int32
    var output: String
    var errors: String
  }

  private func test(_ arguments: [String], in directory: String) throws -> Result {
    let process = Process()
    let programs = try #require(ProofScript.programs)
    process.executableURL = URL(fileURLWithPath: "\(programs)/pubsub-etl")
    process.arguments = ["test"] + arguments
    process.currentDirectoryURL = URL(fileURLWithPath: directory)
    process.environment = [:]
    let (stdout, stderr) = (Pipe(), Pipe())
    (process.standardOutput, process.standardError) = (stdout, stderr)
    try process.run()
    // What is written fits the pipes.
    let output = stdout.fileHandleForReading.readDataToEndOfFile()
    let errors = stderr.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return Result(
      status: process.terminationStatus, output: String(decoding: output, as: UTF8.self),
      errors: String(decoding: errors, as: UTF8.self))
  }

  @Test(
    "test finds the cases in the working directory, reports differences and updates expectations")
  func command() throws {
    let directory = try TemporaryDirectory()
    let copy = "\(directory.path)/pipelines"
    try FileManager.default.copyItem(atPath: Self.pipelines.path, toPath: copy)
    let passed = try self.test([], in: directory.path)
    #expect(passed.status == 0)
    #expect(passed.errors == "")
    #expect(passed.output.contains("pipelines/opps.test.json: 4 cases passed\n"))

    let file = "\(copy)/opps.test.json"
    let text = try String(contentsOfFile: file, encoding: .utf8)
    let changed = text.replacing(#""Amount": 1200.5"#, with: #""Amount": 1200.75"#)
    // The event's amount and the expected one: only the latter is to differ.
    let parts = changed.components(separatedBy: "1200.75")
    try #require(parts.count == 3)
    try "\(parts[0])1200.5\(parts[1])1200.75\(parts[2])".write(
      toFile: file, atomically: true, encoding: .utf8)
    let failed = try self.test([file], in: directory.path)
    #expect(failed.status == 1)
    #expect(failed.errors == "")
    #expect(failed.output.contains("expected Amount: 1200.75\n"), "\(failed.output)")
    #expect(failed.output.contains("found    Amount: 1200.5\n"), "\(failed.output)")
    #expect(failed.output.hasSuffix("opps.test.json: 1 of 4 cases failed\n"))

    #expect(try self.test(["--update", "\(copy)/opps.json"], in: directory.path).status == 0)
    #expect(try String(contentsOfFile: file, encoding: .utf8) == text)
    // Nothing but the test files was there before, and nothing is now.
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == ["pipelines"])
  }

  @Test("A mistake in a test file is reported with its place and has its own exit code")
  func mistakes() throws {
    let directory = try TemporaryDirectory()
    #expect(try self.test([], in: directory.path).status == 64)
    let copy = "\(directory.path)/pipelines"
    try FileManager.default.copyItem(atPath: Self.pipelines.path, toPath: copy)
    let file = "\(copy)/opps.test.json"
    try "{\n \"cases\": [ { \"evnts\": [] } ] }".write(
      toFile: file, atomically: true, encoding: .utf8)
    let test = try self.test([file], in: directory.path)
    #expect(test.status == 64)
    #expect(test.errors.contains("opps.test.json:2:15: /cases/0/evnts: unknown key"), "\(test)")
    try "{}".write(toFile: "\(copy)/opps.json", atomically: true, encoding: .utf8)
    #expect(try self.test([file], in: directory.path).status == 78)
  }
}
