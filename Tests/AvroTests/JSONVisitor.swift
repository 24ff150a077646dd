import Avro
import Bytes
import JSON

/// Puts a decoded payload together again as one JSON text, nulls included: what flattening took
/// apart must come out as the datum that went in.
struct JSONVisitor: FieldVisitor {
  private enum Value {
    case scalar(UInt64)
    case bytes([UInt8])
    case text([UInt8])
    case record
    case items([[UInt8]])
  }

  private let payload: [UInt8]
  private var values: [Int: Value] = [:]

  init(payload: [UInt8]) { self.payload = payload }

  mutating func scalar(_ slot: Int, _ bits: UInt64) { self.values[slot] = .scalar(bits) }
  mutating func bytes(_ slot: Int, offset: Int, count: Int) {
    self.values[slot] = .bytes(Array(self.payload[offset..<offset + count]))
  }
  mutating func record(_ slot: Int) { self.values[slot] = .record }
  mutating func text(_ slot: Int, _ utf8: UnsafeBufferPointer<UInt8>) {
    self.values[slot] = .text(Array(utf8))
  }
  mutating func item(_ slot: Int, offset: Int, count: Int) {
    var items: [[UInt8]] = []
    if case .items(let known) = self.values[slot] { items = known }
    self.values[slot] = .items(items + [Array(self.payload[offset..<offset + count])])
  }

  /// Decodes with the plan and renders what was visited.
  static func decode(_ payload: [UInt8], with plan: DecodePlan) throws -> String {
    var visitor = JSONVisitor(payload: payload)
    let scratch = DecodeScratch()
    try payload.withUnsafeBufferPointer { try plan.decode($0, into: &visitor, scratch: scratch) }
    var out = ByteBuffer()
    if plan.fields.count == 1, plan.fields[0].name.isEmpty {
      visitor.write(plan.fields[0], to: &out)
    } else {
      visitor.write(plan.fields, to: &out)
    }
    return String(decoding: out.bytes, as: UTF8.self)
  }

  private func write(_ fields: [DecodePlan.Field], to out: inout ByteBuffer) {
    out.append(UInt8(ascii: "{"))
    for (index, field) in fields.enumerated() {
      if index > 0 { out.append(UInt8(ascii: ",")) }
      out.appendJSONString(field.name)
      out.append(UInt8(ascii: ":"))
      self.write(field, to: &out)
    }
    out.append(UInt8(ascii: "}"))
  }

  private func write(_ field: DecodePlan.Field, to out: inout ByteBuffer) {
    switch field.content {
    case .value(let slot, let type):
      self.write(slot, type, to: &out)
    case .record(let slot, let scalar, let fields):
      if self.values[slot] != nil {
        self.write(fields, to: &out)
      } else if let scalar {
        self.write(scalar.slot, scalar.type, to: &out)
      } else {
        out.append(utf8: "null")
      }
    case .list(let slot):
      out.append(UInt8(ascii: "["))
      if case .items(let items) = self.values[slot] {
        for (index, item) in items.enumerated() {
          if index > 0 { out.append(UInt8(ascii: ",")) }
          item.withUnsafeBufferPointer { out.appendJSONString($0) }
        }
      }
      out.append(UInt8(ascii: "]"))
    }
  }

  private func write(_ slot: Int, _ type: ValueType, to out: inout ByteBuffer) {
    switch self.values[slot] {
    case nil:
      out.append(utf8: "null")
    case .scalar(let bits):
      self.write(bits, type, to: &out)
    case .bytes(let bytes):
      bytes.withUnsafeBufferPointer { self.write($0, type, to: &out) }
    case .text(let text):
      if type == .uuid || type == .bigDecimal {
        text.withUnsafeBufferPointer { out.appendJSONString($0) }
      } else {
        out.append(text)
      }
    case .record, .items:
      out.append(utf8: "\"a slot of another kind\"")
    }
  }

  private func write(_ bits: UInt64, _ type: ValueType, to out: inout ByteBuffer) {
    let value = Int64(bitPattern: bits)
    func quoted(_ body: (inout ByteBuffer) -> Void) {
      out.append(UInt8(ascii: "\""))
      body(&out)
      out.append(UInt8(ascii: "\""))
    }
    switch type {
    case .boolean: out.appendJSON(bits == 1)
    case .float: out.appendJSON(Float(bitPattern: UInt32(truncatingIfNeeded: bits)))
    case .double: out.appendJSON(Double(bitPattern: bits))
    case .enumeration(let symbols): out.appendJSONString(symbols[Int(bits)])
    case .date: quoted { $0.appendDate(days: Int32(value)) }
    case .dateInMilliseconds: quoted { $0.appendDate(milliseconds: value) }
    case .time(let unit): quoted { $0.appendTime(value, unit.fraction) }
    case .timestamp(let unit, let isLocal):
      quoted { $0.appendTimestamp(value, unit.fraction, isLocal: isLocal) }
    default: out.append(value)
    }
  }

  private func write(
    _ bytes: UnsafeBufferPointer<UInt8>, _ type: ValueType, to out: inout ByteBuffer
  ) {
    switch type {
    case .string, .uuid:
      out.appendJSONString(bytes)
      return
    case .duration:
      func part(_ index: Int) -> UInt64 {
        (0..<4).reduce(0) { $0 | UInt64(bytes[index * 4 + $1]) << UInt64($1 * 8) }
      }
      out.append(
        utf8: "{\"months\":\(part(0)),\"days\":\(part(1)),\"milliseconds\":\(part(2))}")
      return
    default:
      break
    }
    out.append(UInt8(ascii: "\""))
    if case .decimal(_, let scale) = type {
      out.appendDecimal(unscaled: bytes, scale: scale)
    } else {
      out.appendBase64(bytes)
    }
    out.append(UInt8(ascii: "\""))
  }
}

extension LogicalType.TimeUnit {
  fileprivate var fraction: ByteBuffer.SecondFraction {
    switch self {
    case .milliseconds: .milliseconds
    case .microseconds: .microseconds
    case .nanoseconds: .nanoseconds
    }
  }
}
