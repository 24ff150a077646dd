import Foundation

/// A Python program of `Tests/Fixtures`.
package enum PythonScript {
  /// Runs it to its end and returns what it printed.
  ///
  /// - Throws: `ProgramFailure` when it fails, with what it printed.
  package static func run(_ name: String, _ arguments: [String]) throws -> String {
    let tests = URL(fileURLWithPath: #filePath)
      .deletingLastPathComponent().deletingLastPathComponent()
    let script = tests.appending(path: "Fixtures/\(name)")
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["python3", script.path] + arguments
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let bytes = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    let text = String(decoding: bytes, as: UTF8.self)
    guard process.terminationStatus == 0 else { throw ProgramFailure(message: "\(name): \(text)") }
    return text
  }
}
