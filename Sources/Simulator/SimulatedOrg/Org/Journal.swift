internal import Glibc

/// Records what happened to the org after its first events. A restart repeats the same inputs in
/// the same order and so gives the same log.
///
/// A text file, one entry per line, fields separated by tabs; the first line is the fingerprint of
/// the settings that the first events depend on. Entries are written before a client can see their
/// effect. Confined to one thread at a time by its owner.
final class Journal {
  enum Entry: Equatable {
    /// Generated events, all at one time. `isLive`: they count for `--live-count`.
    case publish(time: Int64, count: Int, topic: String?, isLive: Bool)
    /// An event that a client published.
    case received(time: Int64, topic: String, id: String, payload: [UInt8])
    /// The ID of an empty response was given out.
    case keepalive(time: Int64, topic: String)
    case newSchemas
    /// An admin changed a field.
    case fields(time: Int64, FieldChange)
    case clock(milliseconds: Int64)
  }

  private let path: String
  private let descriptor: Int32
  /// The content of the file.
  let entries: [Entry]

  /// - Throws: `configuration` when the file belongs to other settings.
  init(path: String, fingerprint: String) throws {
    self.path = path
    self.descriptor = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o644)
    if self.descriptor < 0 { throw SimulatorError.system("open(\"\(path)\")") }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 64 << 10)
    while true {
      let count = read(self.descriptor, &chunk, chunk.count)
      if count <= 0 { break }
      bytes += chunk[..<count]
    }
    // a last line without its end was being written when the process died: nobody has seen its events
    let end = bytes.lastIndex(of: 10).map { $0 + 1 } ?? 0
    guard ftruncate(self.descriptor, off_t(end)) == 0,
      lseek(self.descriptor, off_t(end), SEEK_SET) >= 0
    else {
      let error = SimulatorError.system("ftruncate(\"\(path)\")")
      close(self.descriptor)
      throw error
    }
    let lines = String(decoding: bytes[..<end], as: UTF8.self).split(separator: "\n")
    guard let first = lines.first else {
      self.entries = []
      try self.write(fingerprint)
      return
    }
    guard first == fingerprint else {
      close(self.descriptor)
      throw SimulatorError(
        .configuration,
        "\(path) was written with other settings (\(first)); use the same data, seed, "
          + "events, epoch, span, topics and shares, or another --state-dir"
      )
    }
    do {
      self.entries = try lines.dropFirst().enumerated().map { index, line in
        guard let entry = Self.entry(line) else {
          throw SimulatorError(.configuration, "\(path), line \(index + 2): not an entry")
        }
        return entry
      }
    } catch {
      close(self.descriptor)
      throw error
    }
  }

  deinit { close(self.descriptor) }

  func append(_ entry: Entry) throws {
    try self.write(Self.line(entry))
  }

  private func write(_ line: String) throws {
    let bytes = Array((line + "\n").utf8)
    var start = 0
    while start < bytes.count {
      let count = bytes.withUnsafeBytes {
        Glibc.write(self.descriptor, $0.baseAddress?.advanced(by: start), $0.count - start)
      }
      if count < 0 {
        if errno == EINTR { continue }
        throw SimulatorError.system("write(\"\(self.path)\")")
      }
      start += count
    }
  }

  static func line(_ entry: Entry) -> String {
    switch entry {
    case .publish(let time, let count, let topic, let isLive):
      return "\(isLive ? "live" : "publish")\t\(time)\t\(count)\t\(topic ?? "-")"
    case .received(let time, let topic, let id, let payload):
      return "received\t\(time)\t\(topic)\t\(Self.hex(Array(id.utf8)))\t\(Self.hex(payload))"
    case .keepalive(let time, let topic): return "keepalive\t\(time)\t\(topic)"
    case .newSchemas: return "schemas"
    case .fields(let time, let change): return "fields\t\(time)\t\(change.text)"
    case .clock(let milliseconds): return "clock\t\(milliseconds)"
    }
  }

  static func entry(_ line: Substring) -> Entry? {
    let parts = line.split(separator: "\t", omittingEmptySubsequences: false)
    switch (parts[0], parts.count) {
    case ("publish", 4), ("live", 4):
      guard let time = Int64(parts[1]), let count = Int(parts[2]) else { return nil }
      return .publish(
        time: time, count: count, topic: parts[3] == "-" ? nil : String(parts[3]),
        isLive: parts[0] == "live")
    case ("received", 5):
      guard let time = Int64(parts[1]), let id = Self.bytes(parts[3]),
        let payload = Self.bytes(parts[4])
      else { return nil }
      return .received(
        time: time, topic: String(parts[2]), id: String(decoding: id, as: UTF8.self),
        payload: payload)
    case ("keepalive", 3):
      return Int64(parts[1]).map { .keepalive(time: $0, topic: String(parts[2])) }
    case ("schemas", 1): return .newSchemas
    case ("fields", 3):
      guard let time = Int64(parts[1]), let change = try? FieldChange(parsing: String(parts[2]))
      else { return nil }
      return .fields(time: time, change)
    case ("clock", 2): return Int64(parts[1]).map { .clock(milliseconds: $0) }
    default: return nil
    }
  }

  private static func hex(_ bytes: [UInt8]) -> String {
    let digits = Array("0123456789abcdef".utf8)
    return String(
      decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
  }

  private static func bytes(_ hex: Substring) -> [UInt8]? {
    let digits = hex.compactMap(\.hexDigitValue)
    guard digits.count == hex.count, digits.count % 2 == 0 else { return nil }
    return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
  }
}
