public import JSON
internal import Pipeline

/// Gap, overflow and wildcard events, by object: the files lack the values of their changes until a
/// snapshot that begins later is complete. Part of the sink's state.
public struct GapEvents: Sendable, Equatable {
  private struct Count: Sendable, Equatable {
    /// Events from before the snapshot in progress.
    var covered = 0
    var open = 0
  }

  private static let key = "gap_events"

  private var counts: [String: Count] = [:]

  init() {}

  /// - Parameter state: the sink's state; earlier versions stored no counts.
  public init(in state: JSONValue?) {
    for member in state?[Self.key]?.members ?? [] {
      self.counts[member.name] = Count(
        covered: member.value["covered"]?.integer.map { Int($0) } ?? 0,
        open: member.value["open"]?.integer.map { Int($0) } ?? 0)
    }
  }

  /// The number of events of each object that has any.
  public var byObject: [String: Int] { self.counts.mapValues { $0.covered + $0.open } }

  /// Counts an event, unless its record is deleted and so in no view of current records.
  mutating func note(_ event: RecordBatch.Event, of batch: RecordBatch) {
    switch event.kind {
    case .change, .event, .snapshot: return
    case .overflow, .wildcard: break
    case .gap:
      guard !batch.row(event.firstRow).text(MetadataSlot.changeType).equals("GAP_DELETE") else {
        return
      }
    }
    self.counts[batch.layout.entity, default: Count()].open += 1
  }

  mutating func beginSnapshot(of entity: String) {
    guard let count = self.counts[entity] else { return }
    self.counts[entity] = Count(covered: count.covered + count.open)
  }

  mutating func completeSnapshot(of entity: String) {
    self.counts[entity]?.covered = 0
    if self.counts[entity]?.open == 0 { self.counts[entity] = nil }
  }

  /// The state with these counts instead of its own.
  func adding(to state: JSONValue) -> JSONValue {
    guard var members = state.members else { return state }
    members.removeAll { $0.name == Self.key }
    guard !self.counts.isEmpty else { return JSONValue(.object(members)) }
    let counts = self.counts.sorted { $0.key < $1.key }.map { entity, count in
      JSONMember(
        entity, ["covered": .integer(count.covered), "open": .integer(count.open)] as JSONValue)
    }
    return JSONValue(.object(members + [JSONMember(Self.key, JSONValue(.object(counts)))]))
  }
}
