internal import Bytes
internal import JSON
internal import Pipeline

/// Writes a record that was not flattened as JSON text, as in a line of a file, except that NaN and
/// infinities are strings, as in `to_jsonb`. Compiled once per layout.
struct RecordJSONWriter {
  private struct Member {
    /// `"City":`
    var key: [UInt8]
    var slot: Int
    var value: Value
  }

  private indirect enum Value {
    case scalar(ColumnType)
    case constant([UInt8])
    case enumeration([[UInt8]])
    case record(RecordJSONWriter)
  }

  private let members: [Member]
  /// The scalar branch of a union of a scalar and a record, which is written in place of the
  /// record.
  private let scalar: Member?

  /// - Parameter column: a record.
  init(_ column: Column) {
    guard case .record(_, let scalar, let children) = column.content else {
      preconditionFailure("\(column.name) is no record")
    }
    self.scalar = scalar.map { Self.member(column.name, $0.slot, $0.type) }
    self.members = children.map { child in
      switch child.content {
      case .constant(let text):
        Member(key: Self.key(child.name), slot: -1, value: .constant(Self.quoted(text)))
      case .slot(let slot, let type): Self.member(child.name, slot, type)
      case .record(let slot, _, _):
        Member(key: Self.key(child.name), slot: slot, value: .record(RecordJSONWriter(child)))
      }
    }
  }

  private static func member(_ name: String, _ slot: Int, _ type: ColumnType) -> Member {
    if case .enumeration(let symbols) = type {
      return Member(
        key: Self.key(name), slot: slot, value: .enumeration(symbols.map { Self.quoted($0) }))
    }
    return Member(key: Self.key(name), slot: slot, value: .scalar(type))
  }

  private static func key(_ name: String) -> [UInt8] { Self.quoted(name) + [UInt8(ascii: ":")] }

  private static func quoted(_ text: String) -> [UInt8] {
    var buffer = ByteBuffer(capacity: 16)
    buffer.appendJSONString(text)
    return Array(buffer.bytes)
  }

  /// Appends `{…}` of the present children, or the scalar.
  ///
  /// - Parameter lost: the batch's `nonfinite`.
  func append(
    row: RecordBatch.Row, lost: [RecordBatch.NonfiniteNumber], to output: inout ByteBuffer
  ) {
    if let scalar, row.hasValue(scalar.slot) {
      self.append(scalar, row, lost, to: &output)
      return
    }
    output.append(UInt8(ascii: "{"))
    var isFirst = true
    for member in self.members {
      let presence =
        member.slot < 0 ? RecordBatch.Presence.value : row.presence[member.slot]
      guard presence != RecordBatch.Presence.absent else { continue }
      if !isFirst { output.append(UInt8(ascii: ",")) }
      isFirst = false
      output.append(member.key)
      if presence == RecordBatch.Presence.null {
        output.append(utf8: "null")
      } else {
        self.append(member, row, lost, to: &output)
      }
    }
    output.append(UInt8(ascii: "}"))
  }

  private func append(
    _ member: Member, _ row: RecordBatch.Row, _ lost: [RecordBatch.NonfiniteNumber],
    to output: inout ByteBuffer
  ) {
    switch member.value {
    case .constant(let text): output.append(text)
    case .enumeration(let symbols): output.append(symbols[Int(row.cells[member.slot])])
    case .record(let writer): writer.append(row: row, lost: lost, to: &output)
    case .scalar(let type): Self.append(row.cells[member.slot], type, row, lost, to: &output)
    }
  }

  private static func append(
    _ cell: UInt64, _ type: ColumnType, _ row: RecordBatch.Row,
    _ lost: [RecordBatch.NonfiniteNumber],
    to output: inout ByteBuffer
  ) {
    let number = Int64(bitPattern: cell)
    switch type {
    case .boolean: output.appendJSON(cell != 0)
    case .int32, .int64: output.append(number)
    case .float:
      let value = Float(bitPattern: UInt32(truncatingIfNeeded: cell))
      if value.isFinite { output.append(value) } else { output.appendJSON(nonfinite: value) }
    case .double:
      let value = Double(bitPattern: cell)
      if value.isFinite { output.append(value) } else { output.appendJSON(nonfinite: Float(value)) }
    case .string, .uuid: output.appendJSONString(row.bytes(cell))
    case .stringList: output.append(row.bytes(cell))
    case .json: output.append(json: row.bytes(cell), lost: lost.numbers(ofText: cell))
    case .duration: output.appendDuration(row.bytes(cell))
    // Sets of fields are metadata, and enumerations have their own case.
    case .fieldSet, .enumeration: preconditionFailure("\(type) within a record")
    case .bytes, .decimal, .date, .time, .timestamp:
      output.append(UInt8(ascii: "\""))
      switch type {
      case .bytes: output.appendBase64(row.bytes(cell))
      case .decimal(_, let scale): output.appendDecimal(unscaled: row.bytes(cell), scale: scale)
      case .date(.days): output.appendDate(days: Int32(truncatingIfNeeded: number))
      case .date(.milliseconds): output.appendDate(milliseconds: number)
      case .time(let unit): output.appendTime(number, .init(unit))
      case .timestamp(let unit, let isLocal):
        output.appendTimestamp(number, .init(unit), isLocal: isLocal)
      default: break
      }
      output.append(UInt8(ascii: "\""))
    }
  }
}

extension ByteBuffer.SecondFraction {
  fileprivate init(_ unit: ColumnType.TimeUnit) {
    self =
      switch unit {
      case .milliseconds: .milliseconds
      case .microseconds: .microseconds
      case .nanoseconds: .nanoseconds
      }
  }
}
