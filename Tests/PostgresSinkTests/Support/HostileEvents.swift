import Pipeline
import PostgresSink
import TestSupport

/// Events whose headers and values are whatever bytes a broken or malicious service can send.
struct HostileEvents {
  private var generator: SeededGenerator

  init(seed: UInt64) { self.generator = SeededGenerator(state: seed) }

  static let layouts: [RecordLayout] = {
    let long = String(repeating: "Long_name_", count: 8)
    func layout(_ schemaID: String, _ columns: [(name: String, type: ColumnType)]) -> RecordLayout {
      let fields = [("Name", ColumnType.string), ("Amount", .double)] + columns
      return .test(
        fields.enumerated().map { Column($1.0, $0, $1.1) }, schemaID: schemaID)
    }
    return [
      layout(
        "schema-1",
        [
          ("\(long)a", .string), ("\(long)b", .int64), ("we\"ird", .json),
          ("'quo''te'", .stringList),
          ("back\\slash", .bytes), ("ctid", .decimal(precision: 40, scale: 38)),
        ]),
      layout(
        "schema\0-2",
        [
          ("select", .date(.days)), ("Töne ❄", .date(.milliseconds)),
          ("%s", .timestamp(.milliseconds, isLocal: false)), ("a b", .time(.microseconds)),
          ("$1", .duration), ("{x}", .uuid), ("\(long)a", .string),
        ]),
      // `ctid` with another type: the column is renamed.
      layout(
        "schema-3 \(String(repeating: "x", count: 20_000))",
        [("ctid", .string), ("a.b", .timestamp(.nanoseconds, isLocal: true)), ("F", .float)]),
    ]
  }()

  private mutating func chance(_ percent: Int) -> Bool {
    Int.random(in: 0..<100, using: &self.generator) < percent
  }

  /// Bytes that neither compress nor are valid in an index beyond its limit.
  private mutating func noise(_ count: Int) -> [UInt8] {
    (0..<count).map { _ in UInt8.random(in: 33...126, using: &self.generator) }
  }

  mutating func text() -> [UInt8] {
    switch Int.random(in: 0..<16, using: &self.generator) {
    case 0: []
    case 1: self.noise(20_000)
    case 2: Array(repeating: UInt8(ascii: "a"), count: 20_000)
    case 3: Array("a\0b".utf8)
    case 4: [0]
    case 5: Array(#"a",\{}NULL"#.utf8)
    case 6: Array("'; DROP TABLE x; --".utf8)
    case 7: [0xFF, 0xFE, 0x41]
    case 8: [0xED, 0xA0, 0x80]
    case 9: [0xF4, 0x90, 0x80, 0x80]
    case 10: Array("😀\u{202E}\u{FFFF}\n\t\u{1}".utf8)
    case 11: self.noise(1024)
    case 12: self.noise(2600)
    case 13: Array("null".utf8)
    case 14: self.noise(100)
    default: Array(",,,".utf8)
    }
  }

  private mutating func integer() -> Int64 {
    let values: [Int64] = [
      .min, .min + 1, .max, .max - 1, 0, -1, Int64(Int32.max) + 1, Int64(Int32.min) - 1,
      -62_135_596_800_001, 253_402_300_800_000, -210_866_803_200_001, -210_866_803_200_000,
      9_224_318_015_999_999, 9_224_318_016_000_000, 9_223_372_036_854_775, 5_373_484 * 86_400_000,
      2_147_483_494, 86_400_000_000, 86_400_000_001, 1_771_300_995_000,
    ]
    return values.randomElement(using: &self.generator) ?? 0
  }

  private mutating func double() -> Double {
    let values: [Double] = [
      .nan, .infinity, -.infinity, .greatestFiniteMagnitude, .leastNonzeroMagnitude, -0.0, 1e13,
      0.1, 1e-300, 12.5, -1e22,
    ]
    return values.randomElement(using: &self.generator) ?? 0
  }

  private mutating func json() -> String {
    switch Int.random(in: 0..<8, using: &self.generator) {
    case 0: String(repeating: "[", count: 9000) + String(repeating: "]", count: 9000)
    case 1: #"{"a":1e400000}"#
    case 2: #"{"a\u0000":"\u0000"}"#
    case 3: #"{"a":"#
    case 4: #"["\ud800"]"#
    case 5: #"{"a":{"b":[1,2,null,"\\u0000"]}}"#
    case 6: "1e131072"
    default: #"{"n":1e-16384}"#
    }
  }

  private mutating func value(_ type: ColumnType) -> TestCell {
    if self.chance(15) { return .null }
    switch type {
    case .double: return .double(self.double())
    case .float: return .float(Float(self.double()))
    case .string: return .bytes(self.text())
    case .json: return .text(self.json())
    case .stringList: return .text(#"["a\u0000b",null,"\ud83d","x\"y",""]"#)
    case .bytes: return .bytes(self.noise(7))
    case .decimal:
      return .bytes(
        [UInt8](repeating: self.chance(50) ? 0x7F : 0x80, count: self.chance(50) ? 3 : 90))
    case .duration: return .bytes([UInt8](repeating: self.chance(50) ? 0xFF : 0x01, count: 12))
    case .uuid:
      return .text(self.chance(50) ? "123e4567-e89b-12d3-a456-42661417400g" : "not one")
    case .int32: return .integer(Int64(Int32.min))
    default: return .integer(self.integer())
    }
  }

  private static let changes: [(type: String, kind: EventKind)] = [
    ("CREATE", .change), ("UPDATE", .change), ("UPDATE", .change), ("DELETE", .change),
    ("UNDELETE", .change), ("SNAPSHOT", .change), ("GAP_CREATE", .gap), ("GAP_UPDATE", .gap),
    ("GAP_DELETE", .gap), ("GAP_UNDELETE", .gap), ("GAP_OVERFLOW", .overflow),
    ("UPDATE", .wildcard),
  ]

  /// Metadata that an event has in place of what is right.
  private mutating func metadata(_ layout: RecordLayout, place: Int64) -> [Int: TestCell] {
    var metadata: [Int: TestCell] = [:]
    if self.chance(40) {
      // Unlike others, so that events can be told apart.
      metadata[MetadataSlot.eventID] = .bytes(self.text() + Array("#\(place)".utf8))
    } else if self.chance(5) {
      metadata[MetadataSlot.eventID] = .bytes([])
    }
    for slot in [
      MetadataSlot.entity, MetadataSlot.commitUser, MetadataSlot.transactionKey,
      MetadataSlot.changeOrigin,
    ] where self.chance(12) {
      metadata[slot] = .bytes(self.text())
    }
    if self.chance(25) { metadata[MetadataSlot.recordID] = .bytes(self.text()) }
    if self.chance(10) {
      metadata[MetadataSlot.recordID] = .null
      metadata[MetadataSlot.recordIDs] = .text(
        ["[]", #"["r1","r2","q\"uo"]"#, #"["","\u0000"]"#].randomElement(using: &self.generator)
          ?? "")
    }
    if self.chance(12) { metadata[MetadataSlot.sequenceNumber] = .integer(self.integer()) }
    if self.chance(12) {
      let numbers = ["", "-", "9223372036854775808", "-9223372036854775808", "1e5", "007"]
      metadata[MetadataSlot.commitNumber] = .text(
        numbers.randomElement(using: &self.generator) ?? "")
    }
    for slot in [MetadataSlot.changedFields, MetadataSlot.nulledFields, MetadataSlot.diffFields]
    where self.chance(25) {
      metadata[slot] = .bytes(
        (0..<(layout.slotCount + 7) / 8).map { _ in
          UInt8.random(in: 0...255, using: &self.generator)
        })
    }
    return metadata
  }

  /// Appends an event.
  mutating func append(to batch: RecordBatch, ordinal: Int64) {
    let change = Self.changes.randomElement(using: &self.generator) ?? ("UPDATE", .change)
    let record = "r\(Int.random(in: 0..<6, using: &self.generator))"
    var fields: [Int: TestCell] = [:]
    for column in batch.layout.columns where self.chance(40) {
      guard case .slot(let slot, let type) = column.content else { continue }
      // Not every event has a value that is refused.
      fields[slot] =
        if case .string = type { .bytes(self.chance(80) ? Array("näme".utf8) : self.text()) } else {
          self.chance(25) ? self.value(type) : .null
        }
    }
    batch.addChange(
      change.type, record, ordinal: ordinal, kind: change.kind,
      eventID: "event-\(ordinal)",
      commitTimestamp: self.chance(20) ? self.integer() : 1_771_300_995_000 + ordinal * 1000,
      metadata: self.metadata(batch.layout, place: ordinal), fields)
  }
}
