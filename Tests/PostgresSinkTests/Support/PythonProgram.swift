import Foundation
import Testing

/// A Python program of `Tests/Fixtures`.
enum PythonProgram {
  /// Runs it to its end and returns what it printed. Fails the test when it fails.
  static func run(_ name: String, _ arguments: [String]) throws -> String {
    let tests = URL(fileURLWithPath: #filePath)
      .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["python3", tests.appending(path: "Fixtures/\(name)").path] + arguments
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let bytes = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    let text = String(decoding: bytes, as: UTF8.self)
    try #require(process.terminationStatus == 0, "\(name): \(text)")
    return text
  }
}
