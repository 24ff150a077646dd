internal import Avro
internal import Pipeline

/// A field of the change event header and its destination (ChangeEvents.md#header).
struct HeaderField: Sendable {
  var name: String
  var slot: Int
  var accepts: @Sendable (ValueType) -> Bool
  var isList = false

  /// Looked up by name, because the order is that of the writer schema.
  static let all: [Self] = [
    Self(name: "entityName", slot: MetadataSlot.entity) { $0 == .string },
    Self(name: "recordIds", slot: MetadataSlot.recordIDs, isList: true),
    Self(name: "changeType", slot: MetadataSlot.changeType) {
      if case .enumeration = $0 { true } else { $0 == .string }
    },
    Self(name: "changeOrigin", slot: MetadataSlot.changeOrigin) { $0 == .string },
    Self(name: "transactionKey", slot: MetadataSlot.transactionKey) { $0 == .string },
    Self(name: "sequenceNumber", slot: MetadataSlot.sequenceNumber) { $0 == .int },
    Self(name: "commitTimestamp", slot: MetadataSlot.commitTimestamp) {
      $0 == .long || $0 == .timestamp(.milliseconds, isLocal: false)
    },
    Self(name: "commitNumber", slot: MetadataSlot.commitNumber) { $0 == .long || $0 == .int },
    Self(name: "commitUser", slot: MetadataSlot.commitUser) { $0 == .string },
    Self(name: "nulledFields", slot: MetadataSlot.nulledFields, isList: true),
    Self(name: "diffFields", slot: MetadataSlot.diffFields, isList: true),
    Self(name: "changedFields", slot: MetadataSlot.changedFields, isList: true),
  ]

  private init(
    name: String, slot: Int, isList: Bool = false,
    accepts: @escaping @Sendable (ValueType) -> Bool = { _ in false }
  ) {
    self.name = name
    self.slot = slot
    self.isList = isList
    self.accepts = accepts
  }

  static func named(_ name: String) -> Self? { Self.all.first { $0.name == name } }

  /// Whether a header field is unknown or has a type that its slot can hold.
  static func isAsExpected(_ field: DecodePlan.Field) -> Bool {
    guard let known = Self.named(field.name) else { return true }
    switch field.content {
    case .value(_, let type): return known.accepts(type)
    case .list: return known.isList
    case .record: return false
    }
  }
}

/// The properties of a `changeType`. Unknown types count as changes and are kept as text.
struct ChangeType: Sendable {
  let name: [UInt8]
  let kind: EventKind
  /// CREATE and UNDELETE contain all values, so null and absent mean the same.
  let isFullImage: Bool

  init(_ name: [UInt8]) {
    self.name = name
    self.kind =
      if name.elementsEqual("GAP_OVERFLOW".utf8) {
        .overflow
      } else if name.starts(with: "GAP_".utf8) {
        .gap
      } else {
        .change
      }
    self.isFullImage =
      name.elementsEqual("CREATE".utf8) || name.elementsEqual("UNDELETE".utf8)
  }
}
