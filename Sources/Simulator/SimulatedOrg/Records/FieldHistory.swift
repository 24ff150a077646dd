/// The field history of an object: a row for each tracked field that a change of a record has changed.
///
/// As Salesforce has it: at most 20 fields, no long texts, two rows for a reference (names and IDs),
/// and a row `created`. Rows never change, and have no `SystemModstamp`.
struct FieldHistory {
  enum Column: Sendable {
    case parent, createdBy, createdDate, field, dataType, old, new
  }

  struct Row {
    var record: RecordTable.Record
    var parent: [UInt8]
    var createdBy: [UInt8]
    var field: String
    var dataType = "Text"
    var old = FieldValue.null
    var new = FieldValue.null
  }

  /// The prefix that the rows of all field histories have.
  static let keyPrefix = "017"
  private static let maxFields = 20
  private static let untracked: Set<String> = [
    "Id", "IsDeleted", "CreatedDate", "CreatedById", "LastModifiedDate", "LastModifiedById",
    "SystemModstamp",
  ]

  /// The index of the object whose history this is.
  let object: Int
  private(set) var rows: [Row] = []

  init(object: Int) { self.object = object }

  static func tracked(_ fields: [OrgField]) -> [OrgField] {
    let tracked = fields.filter { field in
      guard case .slot = field.source else { return false }
      return !Self.untracked.contains(field.name) && !field.isLong && !field.isCalculated
        && field.type != .multipicklist && field.type != .encryptedstring
    }
    return Array(tracked.prefix(Self.maxFields))
  }

  mutating func noteCreation(of record: RecordTable.Record, by user: [UInt8]) {
    self.append(Row(record: record, parent: record.id, createdBy: user, field: "created"))
  }

  mutating func note(
    _ field: OrgField, from old: FieldValue, to new: FieldValue, of record: RecordTable.Record,
    by user: [UInt8]
  ) {
    // The history calls OwnerId `Owner`.
    let isStandard = field.type == .reference && field.name.hasSuffix("Id")
    var row = Row(
      record: record, parent: record.id, createdBy: user,
      field: isStandard ? String(field.name.dropLast(2)) : field.name)
    if field.type == .reference {
      row.old = Self.name(of: old)
      row.new = Self.name(of: new)
      self.append(row)
      row.dataType = "EntityId"
    }
    (row.old, row.new) = (old, new)
    self.append(row)
  }

  private static func name(of value: FieldValue) -> FieldValue {
    guard case .text(let id) = value else { return value }
    return .text(Array("Record ".utf8) + id.suffix(6))
  }

  private mutating func append(_ row: Row) {
    var row = row
    let number = UInt64(self.rows.count + 1)
    row.record.number = number
    row.record.id = RecordID.bytes(prefix: Self.keyPrefix, number: 1_000_000 + number)
    row.record.createdAt = row.record.modifiedAt
    (row.record.isDeleted, row.record.isPurged) = (false, false)
    self.rows.append(row)
  }

  func value(_ index: Int, _ column: Column) -> FieldValue {
    let row = self.rows[index]
    return switch column {
    case .parent: .text(row.parent)
    case .createdBy: .text(row.createdBy)
    case .createdDate: .dateTime(row.record.createdAt)
    case .field: .text(Array(row.field.utf8))
    case .dataType: .text(Array(row.dataType.utf8))
    case .old: row.old
    case .new: row.new
    }
  }
}
