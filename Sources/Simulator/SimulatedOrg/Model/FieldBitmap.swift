/// Writes `changedFields`, `nulledFields` and `diffFields` as the service does.
///
/// Source: ChangeEvents.md#bitmaps: the top-level bitmap first if any bit is set in it, then one
/// `<parent>-0x…` entry per compound field, whole bytes, upper-case digits, no leading zero bytes.
enum FieldBitmap {
  private static let digits = Array("0123456789ABCDEF".utf8)

  /// Appends the Avro array of the entries for `slots` (any order). Slots that `schema` does not have are left out.
  static func appendArray(of slots: [Int], in schema: EventSchema, to bytes: inout [UInt8]) {
    guard !slots.isEmpty else {
      bytes.append(0)
      return
    }
    let entries = Self.entries(of: slots.compactMap { schema.positions[$0] })
    AvroWriter.appendStringArray(entries, to: &bytes)
  }

  static func entries(of positions: [EventSchema.Position]) -> [[UInt8]] {
    var top: [Int] = []
    var parents: [Int] = []
    for position in positions {
      if position.child == nil {
        top.append(position.field)
      } else if !parents.contains(position.field) {
        parents.append(position.field)
      }
    }
    var entries: [[UInt8]] = []
    if !top.isEmpty { entries.append(Self.text(of: top)) }
    for parent in parents.sorted() {
      let children = positions.compactMap { $0.field == parent ? $0.child : nil }
      entries.append(Array("\(parent)-".utf8) + Self.text(of: children))
    }
    return entries
  }

  /// `indexes` must not be empty.
  static func text(of indexes: [Int]) -> [UInt8] {
    var highest = 0
    for index in indexes { highest = max(highest, index) }
    let byteCount = highest / 8 + 1
    var bits = [UInt8](repeating: 0, count: byteCount)
    for index in indexes { bits[byteCount - 1 - index / 8] |= 1 << UInt8(index % 8) }
    var text: [UInt8] = [UInt8(ascii: "0"), UInt8(ascii: "x")]
    for byte in bits {
      text.append(Self.digits[Int(byte >> 4)])
      text.append(Self.digits[Int(byte & 15)])
    }
    return text
  }
}
