import Foundation

/// A Python script of `Tests/Fixtures`, running as a server for one or more tests. It ends when the
/// object goes, or the test process.
final class PythonPeer: Sendable {
  let port: UInt16
  private let process: Process
  private let input: FileHandle

  init(_ script: String, _ arguments: [String] = []) throws {
    let folder = URL(filePath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().appending(path: "Fixtures")
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = ["python3", folder.appending(path: script).path] + arguments
    let (input, output) = (Pipe(), Pipe())
    process.standardInput = input
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    var line = Data()
    while let byte = try output.fileHandleForReading.read(upToCount: 1), byte.first != 10 {
      line += byte
    }
    guard let port = UInt16(String(decoding: line, as: UTF8.self)) else {
      process.terminate()
      throw PythonPeerError(message: "\(script) did not print its port")
    }
    self.process = process
    self.input = input.fileHandleForWriting
    self.port = port
  }

  deinit {
    self.process.terminate()
    self.process.waitUntilExit()
  }

  /// Sends one line of command.
  func tell(_ line: String) throws {
    try self.input.write(contentsOf: Data("\(line)\n".utf8))
  }

  /// Ends the process at once, without any farewell.
  func kill() {
    Glibc.kill(self.process.processIdentifier, SIGKILL)
    self.process.waitUntilExit()
  }
}

struct PythonPeerError: Error { var message: String }
