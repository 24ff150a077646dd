import Foundation
import Glibc
import JSON
import Testing

/// What `Tests/Fixtures/avro_pairs.py` writes, read while it is written: neither side holds more
/// than a pair.
final class PairStream {
  struct Description {
    var schema: String
    var canonical: String
    var crc: String
    var md5: String
    var sha256: String
  }

  enum Frame {
    case schema(Description)
    case pair(payload: [UInt8], json: String)
  }

  private let process = Process()
  private let output = Pipe()
  private var buffer = [UInt8](repeating: 0, count: 1 << 16)
  private var filled = 0
  private var taken = 0

  /// - Parameter encodes: the JSON is for an encoder, and the payload is what it must write.
  init(seed: Int, schemas: Int, data: Int, encodes: Bool = false) throws {
    let script = URL(fileURLWithPath: #filePath)
      .deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "Fixtures").appending(path: "avro_pairs.py")
    self.process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    self.process.arguments =
      ["python3", script.path, "\(seed)", "\(schemas)", "\(data)"]
      + (encodes ? ["--encode"] : [])
    self.process.standardOutput = self.output
    try self.process.run()
  }

  deinit {
    if self.process.isRunning { self.process.terminate() }
    self.process.waitUntilExit()
  }

  /// Nil at the end, once the script has ended well.
  func next() throws -> Frame? {
    guard let (kind, content) = try self.frame() else {
      self.process.waitUntilExit()
      try #require(self.process.terminationStatus == 0)
      return nil
    }
    if kind == UInt8(ascii: "P") {
      let (_, json) = try #require(try self.frame())
      return .pair(payload: content, json: String(decoding: json, as: UTF8.self))
    }
    let value = try JSONValue(parsing: content)
    func text(_ name: String) throws -> String { try #require(value[name]?.string) }
    return .schema(
      Description(
        schema: try text("schema"), canonical: try text("canonical"), crc: try text("crc"),
        md5: try text("md5"), sha256: try text("sha256")))
  }

  private func frame() throws -> (kind: UInt8, content: [UInt8])? {
    guard try self.fill(5) else { return nil }
    let head = self.buffer[self.taken..<self.taken + 5]
    let count = head.dropFirst().reduce(0) { $0 << 8 | Int($1) }
    self.taken += 5
    try #require(try self.fill(count))
    defer { self.taken += count }
    return (head[head.startIndex], Array(self.buffer[self.taken..<self.taken + count]))
  }

  /// Makes `count` bytes available; false at the end of the output.
  private func fill(_ count: Int) throws -> Bool {
    while self.filled - self.taken < count {
      if self.taken > 0 {
        self.buffer.removeSubrange(..<self.taken)
        self.buffer += [UInt8](repeating: 0, count: self.taken)
        self.filled -= self.taken
        self.taken = 0
      }
      if count > self.buffer.count {
        self.buffer += [UInt8](repeating: 0, count: count - self.buffer.count)
      }
      let start = self.filled
      let descriptor = self.output.fileHandleForReading.fileDescriptor
      let received = self.buffer.withUnsafeMutableBytes {
        read(descriptor, $0.baseAddress?.advanced(by: start), $0.count - start)
      }
      if received <= 0 {
        try #require(self.filled == 0, "the output ends inside a frame")
        return false
      }
      self.filled += received
    }
    return true
  }
}
