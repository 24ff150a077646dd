internal import Bytes
import JSON
import Pipeline

/// A change as a person reads it, made of a line as files have it, or of a row of a history table.
struct TailChange: Equatable {
  struct Field: Equatable {
    var name: String
    /// Nil if the value before the change is not known, and for a record's first values.
    var before: JSONValue?
    /// Nil if the line names the field without its value.
    var after: JSONValue?
  }

  /// The commit, or when a platform event was created, in milliseconds since 1970; nil if unknown.
  var time: Int64?
  var object: String
  var recordID: String?
  /// The record's name, if the line has it or an earlier line had it.
  var recordName: String?
  /// `UPDATE` and the like; nil for a platform event.
  var changeType: String?
  /// ID of the user who made the change.
  var user: String?
  var fields: [Field] = []

  /// Columns with other values at each change, which the heading shows better.
  private static let stamps: Set<String> = [
    "lastmodifieddate", "lastmodifiedbyid", "systemmodstamp",
  ]

  /// - Parameter known: the values before the change; those after it when this returns.
  init(_ line: JSONValue, known: inout KnownValues) {
    self.object = line["_entity"]?.string ?? "?"
    self.time = Self.time(of: line)
    self.changeType = line["_change_type"]?.string
    self.user = line["_commit_user"]?.string ?? Self.field("CreatedById", of: line)?.string
    self.recordID = line["_record_id"]?.string
    let values = (line.members ?? []).filter { !$0.name.hasPrefix("_") }
    let key = self.recordID.map { "\(self.object) \($0)" }
    let before = key.map { known[$0] } ?? [:]
    self.recordName =
      [line, JSONValue(.object(before.map { JSONMember($0.key, $0.value) }))].lazy
      .compactMap { Self.field("Name", of: $0)?.string }.first
    let changed =
      Self.names(line, "_changed_fields") + Self.names(line, "_nulled_fields")
      + Self.names(line, "_diff_fields")
    if changed.isEmpty {
      // A complete record: what is null is not worth a line.
      self.fields = values.filter { $0.value.content != .null && !Self.isStamp($0.name) }
        .map { Field(name: $0.name, before: nil, after: $0.value) }
    } else {
      var seen: Set<String> = []
      self.fields = changed.filter { seen.insert($0).inserted && !Self.isStamp($0) }.map {
        Field(name: $0, before: before[$0.lowercased()], after: Self.field($0, of: line))
      }
    }
    guard let key else { return }
    // A row of a table has null for each column that did not change.
    let named = Set(changed.map { $0.lowercased() })
    known.note(
      values.map { JSONMember($0.name.lowercased(), $0.value) }
        .filter { $0.value.content != .null || named.contains($0.name) }, of: key)
  }

  /// Milliseconds since 1970.
  private static func time(of line: JSONValue) -> Int64? {
    var text = line["_commit_timestamp"]?.string ?? Self.field("CreatedDate", of: line)?.string
    return text?.withUTF8 { text in
      let text = UnsafeRawBufferPointer(text)
      guard let day = DateText.leadingDay(text), DateText.has(text, 10, "T"),
        // PostgreSQL leaves out zeros at the end of a fraction.
        let clock = DateText.clock(text, 11), let offset = DateText.zone(text, clock.end)
      else { return nil }
      return (day * 86_400 + clock.seconds - offset) * 1000 + clock.nanoseconds / 1_000_000
    }
  }

  /// A field by its API name; columns of tables are in lower case.
  private static func field(_ name: String, of line: JSONValue) -> JSONValue? {
    line[name] ?? line[name.lowercased()]
  }

  private static func isStamp(_ name: String) -> Bool { Self.stamps.contains(name.lowercased()) }

  private static func names(_ line: JSONValue, _ member: String) -> [String] {
    line[member]?.array?.compactMap(\.string) ?? []
  }
}

/// The newest values that were seen of records, by names in lower case, as tables have them; as many
/// as there is room for.
struct KnownValues {
  /// Bytes of names and values, roughly; when there are more, all are forgotten.
  private let maxByteCount: Int
  private var byteCount = 0
  private var records: [String: [String: JSONValue]] = [:]

  init(maxByteCount: Int = 64 << 20) { self.maxByteCount = maxByteCount }

  subscript(record: String) -> [String: JSONValue] { self.records[record] ?? [:] }

  mutating func note(_ members: [JSONMember], of record: String) {
    self.byteCount += members.reduce(record.utf8.count) {
      $0 + $1.name.utf8.count + $1.value.text().utf8.count + 64
    }
    if self.byteCount > self.maxByteCount { (self.byteCount, self.records) = (0, [:]) }
    for member in members { self.records[record, default: [:]][member.name] = member.value }
  }
}
