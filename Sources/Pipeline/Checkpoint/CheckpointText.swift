internal import Bytes
internal import JSON
internal import Pipeline

/// Makes the text of checkpoints: pretty JSON with a line for each topic and each file in progress.
///
/// A run with hundreds of topics changes only some of them in a commit. The lines of the others are
/// those of the checkpoint before.
struct CheckpointText {
  private struct Line<Value> {
    var value: Value
    var text: [UInt8]
  }

  /// By topic.
  private var positions: [String: Line<TopicPosition>] = [:]
  /// By sink, in the order of the state.
  private var files: [String: [Line<JSONValue>]] = [:]
  /// Bytes of the checkpoint before.
  private var byteCount = 1 << 14

  /// A name that no sink can have.
  private static let deadLetters = ""

  /// The text of a checkpoint, with a line end after the last line.
  mutating func text(of document: CheckpointDocument) -> ByteBuffer {
    var buffer = ByteBuffer(capacity: self.byteCount + 1024)
    var rest = document
    (rest.topics, rest.sinks, rest.deadLetters) = (
      [:], [:], document.deadLetters.map { _ in SinkState([]) }
    )
    Self.append(rest.json.members ?? [], level: 1, to: &buffer) { member, buffer in
      switch member.name {
      case "topics": self.append(document.topics, to: &buffer)
      case "sinks":
        let states = document.sinks.sorted { $0.key < $1.key }.map {
          JSONMember($0.key, $0.value.json)
        }
        Self.append(states, level: 2, to: &buffer) { sink, buffer in
          self.append(sink.value, of: sink.name, level: 3, to: &buffer)
        }
      case "dead_letters":
        self.append(
          document.deadLetters?.json ?? [], of: Self.deadLetters, level: 2, to: &buffer)
      default: member.value.write(to: &buffer, format: .pretty, level: 1)
      }
    }
    buffer.append(UInt8(ascii: "\n"))
    self.byteCount = buffer.count
    return buffer
  }

  private mutating func append(_ topics: [String: TopicPosition], to buffer: inout ByteBuffer) {
    let members = topics.keys.sorted().map { JSONMember($0, nil) }
    Self.append(members, level: 2, to: &buffer) { topic, buffer in
      guard let position = topics[topic.name] else { return }
      if let line = self.positions[topic.name], line.value == position {
        return buffer.append(line.text)
      }
      let line = Line(value: position, text: Self.line(position.json))
      self.positions[topic.name] = line
      buffer.append(line.text)
    }
  }

  /// Appends the state of a sink, or of dead letters.
  private mutating func append(
    _ state: JSONValue, of sink: String, level: Int, to buffer: inout ByteBuffer
  ) {
    guard let members = state.members else {
      return state.write(to: &buffer, format: .pretty, level: level - 1)
    }
    Self.append(members, level: level, to: &buffer) { member, buffer in
      guard member.name == "files", let files = member.value.array, !files.isEmpty else {
        return member.value.write(to: &buffer, format: .pretty, level: level)
      }
      let known = self.files[sink] ?? []
      self.files[sink] = files.enumerated().map { index, file in
        index < known.count && known[index].value == file
          ? known[index] : Line(value: file, text: Self.line(file))
      }
      buffer.append(UInt8(ascii: "["))
      for (index, line) in (self.files[sink] ?? []).enumerated() {
        if index > 0 { buffer.append(UInt8(ascii: ",")) }
        Self.breakLine(level + 1, &buffer)
        buffer.append(line.text)
      }
      Self.breakLine(level, &buffer)
      buffer.append(UInt8(ascii: "]"))
    }
  }

  private static func append(
    _ members: [JSONMember], level: Int, to buffer: inout ByteBuffer,
    _ value: (JSONMember, inout ByteBuffer) -> Void
  ) {
    buffer.append(UInt8(ascii: "{"))
    for (index, member) in members.enumerated() {
      if index > 0 { buffer.append(UInt8(ascii: ",")) }
      Self.breakLine(level, &buffer)
      buffer.appendJSONString(member.name)
      buffer.append(utf8: ": " as StaticString)
      value(member, &buffer)
    }
    if !members.isEmpty { Self.breakLine(level - 1, &buffer) }
    buffer.append(UInt8(ascii: "}"))
  }

  private static func breakLine(_ level: Int, _ buffer: inout ByteBuffer) {
    buffer.append(UInt8(ascii: "\n"))
    for _ in 0..<level { buffer.append(utf8: "  " as StaticString) }
  }

  private static func line(_ value: JSONValue) -> [UInt8] {
    var buffer = ByteBuffer(capacity: 4096)
    value.write(to: &buffer, format: .spaced)
    return Array(buffer.bytes)
  }
}
