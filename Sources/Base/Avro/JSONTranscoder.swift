internal import Bytes
internal import JSON

/// Writes values that stay nested after flattening as JSON text, with the same form of each type as
/// in columns.
///
/// NaN and infinities are null; `DecodeScratch.nonfinite` lists them. If keys of a map repeat, all
/// entries are written.
@usableFromInline
final class JSONTranscoder: Sendable {
  private enum Node: Sendable {
    case null
    /// Anything but the cases below.
    case scalar(ValueType, kind: ScalarKind)
    case record([RecordField])
    /// `minimum`: the minimum number of bytes of an item.
    case array(items: Int, minimum: Int)
    case map(values: Int, minimum: Int)
    case union([Int])
  }

  fileprivate enum ScalarKind: Sendable {
    case boolean, int, long, float, double, string, bytes
    case enumeration([[UInt8]])
    case fixed(Int)
  }

  private struct RecordField: Sendable {
    /// `"name":`, after a comma for all but the first.
    let key: [UInt8]
    let name: String
    let type: Int
    let interpretation: ValueType?
  }

  private let nodes: [Node]

  init(_ schema: Schema, interpretation: (Schema.Field) -> ValueType?) {
    self.nodes = schema.definitions.map { definition in
      switch definition.kind {
      case .null: return .null
      case .record(let fields):
        return .record(
          fields.enumerated().map { index, field in
            RecordField(
              key: Array("\(index == 0 ? "" : ",")\"\(field.name)\":".utf8), name: field.name,
              type: field.type.index, interpretation: interpretation(field))
          })
      case .array(let items):
        return .array(items: items.index, minimum: schema.minimumByteCount(of: items))
      case .map(let values):
        return .map(values: values.index, minimum: 1 + schema.minimumByteCount(of: values))
      case .union(let branches): return .union(branches.map(\.index))
      case .enumeration(let symbols, _):
        let texts = symbols.map { Array("\"\($0)\"".utf8) }
        return .scalar(.enumeration(symbols), kind: .enumeration(texts))
      default:
        guard let type = definition.valueType(interpretation: nil) else {
          preconditionFailure("a scalar without a value type")
        }
        return .scalar(type, kind: definition.scalarKind)
      }
    }
  }

  func write(
    _ type: Int, _ next: inout UnsafePointer<UInt8>, _ cursor: AvroCursor,
    _ scratch: DecodeScratch, depth: Int, interpretation: ValueType?, limits: DecodeLimits
  ) throws(AvroError) {
    try cursor.checkText(of: scratch, at: next)
    switch self.nodes[type] {
    case .null:
      scratch.text.append(utf8: "null")
    case .union(let branches):
      let branch = branches[try cursor.index(&next, below: branches.count)]
      try self.write(
        branch, &next, cursor, scratch, depth: depth, interpretation: interpretation,
        limits: limits)
    case .scalar(let valueType, let kind):
      var valueType = valueType
      if let interpretation, valueType == .long { valueType = interpretation }
      try self.writeScalar(valueType, kind, &next, cursor, scratch)
    case .record(let fields):
      try self.enter(depth, limits, cursor, at: next)
      try cursor.spend(fields.count, of: scratch, at: next)
      scratch.text.append(UInt8(ascii: "{"))
      for field in fields {
        scratch.text.append(field.key)
        do throws(AvroError) {
          try self.write(
            field.type, &next, cursor, scratch, depth: depth + 1,
            interpretation: field.interpretation, limits: limits)
        } catch {
          throw error.inside(field.name)
        }
      }
      scratch.text.append(UInt8(ascii: "}"))
    case .array(let items, let minimum):
      try self.enter(depth, limits, cursor, at: next)
      scratch.text.append(UInt8(ascii: "["))
      try self.writeItems(items, minimum, isMap: false, &next, cursor, scratch, depth, limits)
      scratch.text.append(UInt8(ascii: "]"))
    case .map(let values, let minimum):
      try self.enter(depth, limits, cursor, at: next)
      scratch.text.append(UInt8(ascii: "{"))
      try self.writeItems(values, minimum, isMap: true, &next, cursor, scratch, depth, limits)
      scratch.text.append(UInt8(ascii: "}"))
    }
  }

  private func enter(
    _ depth: Int, _ limits: DecodeLimits, _ cursor: AvroCursor, at place: UnsafePointer<UInt8>
  ) throws(AvroError) {
    guard depth <= limits.depth else {
      throw cursor.error(.limitExceeded, "nested deeper than \(limits.depth)", at: place)
    }
  }

  private func writeItems(
    _ type: Int, _ minimum: Int, isMap: Bool, _ next: inout UnsafePointer<UInt8>,
    _ cursor: AvroCursor, _ scratch: DecodeScratch, _ depth: Int, _ limits: DecodeLimits
  ) throws(AvroError) {
    var index = 0
    while true {
      let count = try cursor.blockCount(&next)
      if count == 0 { return }
      try cursor.spend(count, of: scratch, at: next)
      let (needed, isTooMany) = count.multipliedReportingOverflow(by: minimum)
      guard !isTooMany, needed <= cursor.end - next else {
        throw cursor.error(
          .truncated, "a block of \(count) items, \(cursor.end - next) bytes left", at: next)
      }
      for _ in 0..<count {
        if index > 0 { scratch.text.append(UInt8(ascii: ",")) }
        do throws(AvroError) {
          if isMap {
            scratch.text.appendJSONString(try cursor.string(&next))
            scratch.text.append(UInt8(ascii: ":"))
          }
          try self.write(
            type, &next, cursor, scratch, depth: depth + 1, interpretation: nil, limits: limits)
        } catch {
          throw error.inside("[\(index)]")
        }
        index += 1
      }
    }
  }

  private func writeScalar(
    _ type: ValueType, _ kind: ScalarKind, _ next: inout UnsafePointer<UInt8>,
    _ cursor: AvroCursor, _ scratch: DecodeScratch
  ) throws(AvroError) {
    switch kind {
    case .boolean:
      scratch.text.appendJSON(try cursor.boolean(&next) == 1)
    case .int:
      scratch.text.append(try cursor.int(&next), as: type)
    case .long:
      scratch.text.append(try cursor.long(&next), as: type)
    case .float:
      let bits = UInt32(truncatingIfNeeded: try cursor.float(&next))
      scratch.appendJSON(Float(bitPattern: bits))
    case .double:
      scratch.appendJSON(Double(bitPattern: try cursor.double(&next)))
    case .enumeration(let symbols):
      scratch.text.append(symbols[try cursor.index(&next, below: symbols.count)])
    case .string:
      let bytes = type == .uuid ? try cursor.uuid(&next) : try cursor.string(&next)
      scratch.text.appendJSONString(bytes)
    case .bytes:
      try self.writeBytes(type, try cursor.bytes(&next), cursor, scratch)
    case .fixed(let size):
      let place = try cursor.take(size, &next)
      try self.writeBytes(
        type, UnsafeBufferPointer(start: place, count: size), cursor, scratch)
    }
  }

  private func writeBytes(
    _ type: ValueType, _ bytes: UnsafeBufferPointer<UInt8>, _ cursor: AvroCursor,
    _ scratch: DecodeScratch
  ) throws(AvroError) {
    if type == .duration {
      scratch.text.appendDuration(bytes)
      return
    }
    scratch.text.append(UInt8(ascii: "\""))
    switch (type, bytes.baseAddress) {
    case (.decimal(let precision, let scale), _):
      let unscaled = try cursor.decimal(bytes, maxBytes: maxDecimalBytes(precision))
      scratch.text.appendDecimal(unscaled: unscaled, scale: scale)
    case (.bigDecimal, _):
      try cursor.writeBigDecimal(bytes, to: &scratch.text)
    case (.uuid, let start?):
      scratch.text.appendUUID(start)
    default:
      scratch.text.appendBase64(bytes)
    }
    scratch.text.append(UInt8(ascii: "\""))
  }
}

extension Schema.Definition {
  fileprivate var scalarKind: JSONTranscoder.ScalarKind {
    switch self.kind {
    case .boolean: .boolean
    case .int: .int
    case .long: .long
    case .float: .float
    case .double: .double
    case .string: .string
    case .bytes: .bytes
    case .fixed(let size): .fixed(size)
    default: preconditionFailure("\(self.kind.label) is no scalar")
    }
  }
}

extension Schema {
  /// The minimum number of bytes of a value; 0 is always correct.
  fileprivate func minimumByteCount(of type: TypeID) -> Int {
    switch self[type].kind {
    case .null, .record: 0
    case .fixed(let size): size
    case .float: 4
    case .double: 8
    default: 1
    }
  }
}

extension ByteBuffer {
  fileprivate mutating func append(_ value: Int64, as type: ValueType) {
    switch type {
    case .date:
      self.append(UInt8(ascii: "\""))
      self.appendDate(days: Int32(truncatingIfNeeded: value))
    case .dateInMilliseconds:
      self.append(UInt8(ascii: "\""))
      self.appendDate(milliseconds: value)
    case .time(let unit):
      self.append(UInt8(ascii: "\""))
      self.appendTime(value, SecondFraction(unit))
    case .timestamp(let unit, let isLocal):
      self.append(UInt8(ascii: "\""))
      self.appendTimestamp(value, SecondFraction(unit), isLocal: isLocal)
    default:
      self.append(value)
      return
    }
    self.append(UInt8(ascii: "\""))
  }
}

extension ByteBuffer.SecondFraction {
  fileprivate init(_ unit: LogicalType.TimeUnit) {
    switch unit {
    case .milliseconds: self = .milliseconds
    case .microseconds: self = .microseconds
    case .nanoseconds: self = .nanoseconds
    }
  }
}
