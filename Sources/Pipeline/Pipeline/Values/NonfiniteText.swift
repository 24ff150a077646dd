package import Bytes
internal import JSON

extension ByteBuffer {
  /// Appends the JSON text of a cell, with strings in place of the `null` for NaN and infinities.
  package mutating func append(
    json text: UnsafeBufferPointer<UInt8>, lost: ArraySlice<RecordBatch.NonfiniteNumber>
  ) {
    self.append(json: text, lost: lost) { $0.appendJSON(nonfinite: $1) }
  }

  /// Appends `"NaN"`, `"Infinity"` or `"-Infinity"`, as `to_jsonb` writes such a number.
  package mutating func appendJSON(nonfinite value: Float) {
    if value.isNaN {
      self.append(utf8: "\"NaN\"")
    } else if value < 0 {
      self.append(utf8: "\"-Infinity\"")
    } else {
      self.append(utf8: "\"Infinity\"")
    }
  }

  fileprivate mutating func append(
    json text: UnsafeBufferPointer<UInt8>, lost: ArraySlice<RecordBatch.NonfiniteNumber>,
    _ write: (inout ByteBuffer, Float) -> Void
  ) {
    var start = 0
    for number in lost {
      let place = Int(number.offset)
      self.append(UnsafeBufferPointer(rebasing: text[start..<place]))
      write(&self, number.value)
      start = place + "null".utf8.count
    }
    self.append(UnsafeBufferPointer(rebasing: text[start...]))
  }
}

extension JSONValue {
  /// Numbers that occur in no cell's text, where finite numbers are written in full or with an
  /// exponent that a double can have.
  private static let marks = (nan: "1e9997", negative: "1e9998", positive: "1e9999")

  /// Parses the JSON text of a cell. NaN and infinities are numbers with the texts `nan`, `-inf` and `inf`,
  /// which `Double` reads.
  ///
  /// - Parameter lost: the lost numbers of the text.
  init(
    _ text: UnsafeBufferPointer<UInt8>, lost: ArraySlice<RecordBatch.NonfiniteNumber>
  ) throws {
    guard !lost.isEmpty else {
      self = try JSONValue(parsing: Array(text))
      return
    }
    var marked = ByteBuffer(capacity: text.count + 16)
    marked.append(json: text, lost: lost) { buffer, value in
      buffer.append(
        utf8: value.isNaN ? Self.marks.nan : value < 0 ? Self.marks.negative : Self.marks.positive)
    }
    self = try JSONValue(parsing: Array(marked.bytes)).withoutMarks
  }

  private var withoutMarks: JSONValue {
    switch self.content {
    case .number(Self.marks.nan): JSONValue(.number("nan"))
    case .number(Self.marks.negative): JSONValue(.number("-inf"))
    case .number(Self.marks.positive): JSONValue(.number("inf"))
    case .array(let values): .array(values.map(\.withoutMarks))
    case .object(let members):
      JSONValue(.object(members.map { JSONMember($0.name, $0.value.withoutMarks) }))
    default: self
    }
  }
}
