import Foundation
import TestSupport
import Testing

@testable import SimulatedOrg

/// An org of a sales team: its records before the first event, its events, and its records after.
struct SalesOrg {
  struct Change {
    var entity: String
    var type: String
    var time: Int64
    var user: String
    var records: [String]
    var changed: [String]
    var nulled: [String]
    var fields: [String: Any]
  }

  struct Record {
    var isDeleted: Bool
    var fields: [String: Any]
  }

  /// Milliseconds since 1970 of the moment at which the events end.
  let epoch: Int64
  let before: [String: Record]
  let after: [String: Record]
  let changes: [Change]

  /// - Parameter existing: records of each object before the first event.
  init(
    epoch: Int64 = 1_795_730_000_000, seed: UInt64 = 1, events: Int = 200, existing: Int = 150,
    topics: [String] = []
  ) throws {
    self.epoch = epoch
    let directory = try TemporaryDirectory()
    var configuration = SimulatedOrgConfiguration()
    configuration.data = .sales
    configuration.seed = seed
    configuration.existing = existing
    configuration.span = 71 * 3_600_000
    configuration.topics = topics
    func records(_ configuration: SimulatedOrgConfiguration) throws -> [String: Record] {
      let org = try Org(configuration: configuration, epoch: epoch) { Issue.record($0) }
      try org.writeState(to: "\(directory.path)/state")
      return try Self.records("\(directory.path)/state")
    }
    self.before = try records(configuration)
    configuration.events = events
    configuration.truthPath = "\(directory.path)/truth"
    self.after = try records(configuration)
    self.changes = try Self.changes("\(directory.path)/truth")
  }

  private static func lines(_ path: String) throws -> [[String: Any]] {
    try Data(contentsOf: URL(filePath: path)).split(separator: UInt8(ascii: "\n")).map {
      try #require(try JSONSerialization.jsonObject(with: $0) as? [String: Any])
    }
  }

  private static func records(_ path: String) throws -> [String: Record] {
    var records: [String: Record] = [:]
    for line in try Self.lines(path) where line["entity"] as? String != "Station__c" {
      records[try #require(line["id"] as? String)] = Record(
        isDeleted: try #require(line["is_deleted"] as? Bool),
        fields: try #require(line["fields"] as? [String: Any]))
    }
    return records
  }

  /// Those of the topics of one object.
  private static func changes(_ path: String) throws -> [Change] {
    try Self.lines(path).compactMap { line in
      let entity = try #require(line["entity"] as? String)
      guard ["Opportunity", "Account", "Contact", "User"].contains(entity),
        line["topic"] as? String == "/data/\(entity)ChangeEvent",
        let header = line["header"] as? [String: Any]
      else { return nil }
      return Change(
        entity: entity, type: try #require(header["changeType"] as? String),
        time: Int64(try #require(header["commitTimestamp"] as? Int)),
        user: try #require(header["commitUser"] as? String),
        records: try #require(header["recordIds"] as? [String]),
        changed: try #require(header["changedFields"] as? [String]),
        nulled: try #require(header["nulledFields"] as? [String]),
        fields: try #require(line["fields"] as? [String: Any]))
    }
  }

  /// Records of one object, by the beginning of their IDs.
  static func records(_ prefix: String, of records: [String: Record]) -> [String: Record] {
    records.filter { $0.key.hasPrefix(prefix) }
  }

  /// A copy made of the records before the first event and of all changes.
  func folded() -> [String: Record] {
    var copy = self.before
    for change in self.changes {
      for id in change.records {
        switch change.type {
        case "CREATE", "UNDELETE": copy[id] = Record(isDeleted: false, fields: change.fields)
        case "DELETE": copy[id]?.isDeleted = true
        default:
          for path in change.changed {
            Self.set(path, change, in: &copy[id, default: Record(isDeleted: false, fields: [:])])
          }
        }
      }
    }
    return copy
  }

  private static func set(_ path: String, _ change: Change, in record: inout Record) {
    let parts = path.split(separator: ".").map(String.init)
    guard parts.count == 2 else {
      record.fields[path] = change.fields[path]
      return
    }
    var parent = record.fields[parts[0]] as? [String: Any] ?? [:]
    parent[parts[1]] = (change.fields[parts[0]] as? [String: Any])?[parts[1]]
    record.fields[parts[0]] = parent
  }
}
