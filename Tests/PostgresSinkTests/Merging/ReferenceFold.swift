import Cryptography

@testable import PostgresSink

/// What current tables have to hold, told once more in plain words: one event at a time, over
/// dictionaries.
struct ReferenceFold {
  struct Row {
    var values: [String: SampleEvent.Value] = [:]
    var deletedAt: Int64?
    var isStale = false
    var isPartial = true
    var staleFields: Set<String> = []
    var last: SampleEvent?
    /// Seconds since 1970: of the read that the row begins with, and when it was read last.
    var stamp: Int64?
    var readAt: Int64?
  }

  var removesDeleted = false
  private(set) var rows: [String: Row] = [:]
  private(set) var tombstones: [String: SampleEvent] = [:]
  /// Values as the service has them, by hash, standing for what diffs lead to.
  var texts: [String: String] = [:]

  mutating func apply(_ event: SampleEvent) {
    let id = event.recordID
    var row = self.rows[id] ?? Row()
    switch event.change {
    case .create, .undelete:
      row = Row()
      row.isPartial = false
      self.tombstones[id] = nil
      self.set(event, &row)
    case .update:
      if self.tombstones[id] != nil { return }
      self.set(event, &row)
    case .gapUpdate, .unknown:
      if self.tombstones[id] != nil { return }
      row.isStale = true
    case .delete, .gapDelete:
      if self.removesDeleted {
        self.rows[id] = nil
        self.tombstones[id] = event
        return
      }
      row.deletedAt = event.time
    case .gapCreate, .gapUndelete:
      self.tombstones[id] = nil
      row.isStale = true
      row.deletedAt = nil
    case .overflow, .wildcard, .event, .read, .readDeletion, .readFields: return
    }
    row.last = event
    row.stamp = nil
    self.rows[id] = row
  }

  /// A record's state, made anew of everything known of it: the newest read, what the newest read of all
  /// fields and the events say of the fields that this one lacks, and the events since.
  mutating func merge(
    _ id: String, events: [(event: SampleEvent, arrivedAt: Int64)], reads: [SampleRead],
    visibilityWait: Int64
  ) {
    func first(_ read: SampleRead) -> Int {
      ReadMerge.firstApplied(
        ReadMerge.Read(stamp: read.stamp * 1000, readAt: read.readAt * 1000),
        events.map {
          ReadMerge.Event(
            commit: $0.event.time * 1000, arrivedAt: $0.arrivedAt * 1000,
            isGap: ![.create, .update, .delete, .undelete].contains($0.event.change),
            isCreation: $0.event.change == .create)
        }, visibilityWait: visibilityWait * 1000)
    }
    self.rows[id] = nil
    self.tombstones[id] = nil
    let sorted = reads.sorted { ($0.stamp, $0.readAt) < ($1.stamp, $1.readAt) }
    guard let newest = sorted.last else {
      for (event, _) in events { self.apply(event) }
      return
    }
    var row = Row()
    var next = 0
    if let whole = sorted.last(where: \.isWhole) {
      row.values = whole.values
      row.isPartial = false
      next = first(whole)
    }
    let applied = max(next, first(newest))
    for (event, _) in events[next..<applied] {
      switch event.change {
      case .create, .undelete:
        row = Row()
        row.isPartial = false
        self.set(event, &row)
      case .update: self.set(event, &row)
      default: break
      }
    }
    for (name, value) in newest.values { row.values[name] = value }
    row.staleFields.subtract(newest.values.keys)
    // What the newest read lacks cannot be read.
    row.isPartial = false
    if newest.isWhole { row.staleFields = [] }
    row.last = newest.event
    row.stamp = newest.stamp
    row.readAt = newest.readAt
    if newest.isDeletion { row.deletedAt = newest.stamp }
    if newest.isDeletion && self.removesDeleted {
      self.tombstones[id] = newest.event
    } else {
      self.rows[id] = row
    }
    for (event, _) in events[applied...] { self.apply(event) }
  }

  private func set(_ event: SampleEvent, _ row: inout Row) {
    for (name, value) in event.values {
      guard case .diff(let diff) = value else {
        row.values[name] = value
        row.staleFields.remove(name)
        continue
      }
      // The first line of these diffs' base says which text it was made for.
      if case .text(let base) = row.values[name], let new = self.texts[diff + base] {
        row.values[name] = .text(new)
        row.staleFields.remove(name)
      } else {
        row.staleFields.insert(name)
      }
    }
  }

  /// As `SampleTables.currentRows` shows them.
  func shownRows(_ columns: [TableColumn]) -> [String] {
    self.rows.keys.sorted().compactMap { id in
      guard let row = self.rows[id], let last = row.last else { return nil }
      let stale = columns.map(\.name).filter { row.staleFields.contains($0) }
      let fixed = [
        id, "\(last.epoch)", "\(last.ordinal)", last.eventID, last.changeType,
        last.isRead ? "-" : last.user, last.isRead ? "-" : "\(last.time)",
        row.deletedAt.map(String.init) ?? "-", row.isStale ? "t" : "f",
        row.isPartial ? "t" : "f", stale.isEmpty ? "-" : "{\(stale.joined(separator: ","))}",
      ]
      return (fixed + columns.map { Self.shown(row.values[$0.name] ?? .null) })
        .joined(separator: "|")
    }
  }

  /// As `SampleTables.reads` shows them.
  func shownReads() -> [String] {
    self.rows.keys.sorted().compactMap { id in
      guard let row = self.rows[id] else { return nil }
      return "\(id)|\(row.stamp.map(String.init) ?? "-")|\(row.readAt.map(String.init) ?? "-")"
    }
  }

  func shownTombstones() -> [String] {
    self.tombstones.keys.sorted().compactMap { id in
      self.tombstones[id].map { "\(id)|\($0.epoch)|\($0.ordinal)|\($0.time)" }
    }
  }

  private static func shown(_ value: SampleEvent.Value) -> String {
    switch value {
    case .null: "-"
    case .text(let text), .diff(let text): text
    case .integer(let integer): "\(integer)"
    case .number(let number): number == number.rounded() ? "\(Int(number))" : "\(number)"
    case .texts(let texts): "{\(texts.joined(separator: ","))}"
    }
  }
}

/// Random events of some records, with whatever may follow upon whatever.
struct SampleEvents {
  var events: [SampleEvent] = []
  /// New texts by diff and base, as `ReferenceFold.texts`.
  private(set) var texts: [String: String] = [:]
  /// The descriptions that the service has.
  private var descriptions: [String: String] = [:]
  private var generator: SeededGenerator

  init(seed: UInt64, count: Int, records: Int) {
    self.generator = SeededGenerator(state: seed)
    for index in 0..<count {
      let id = "00x\(Int.random(in: 0..<records, using: &self.generator))"
      let change = self.change()
      var event = SampleEvent(
        change: change, recordID: id, ordinal: Int64(index) * 3 + 1,
        time: 1_700_000_000 + Int64(index) + Int64.random(in: -2...2, using: &self.generator))
      switch change {
      case .create, .undelete: self.fill(&event, share: 0.7)
      case .update: self.fill(&event, share: 0.3)
      default: break
      }
      self.events.append(event)
    }
  }

  private mutating func change() -> RowBuffer.Change {
    switch Int.random(in: 0..<100, using: &self.generator) {
    case ..<12: .create
    case ..<70: .update
    case ..<78: .delete
    case ..<83: .undelete
    case ..<86: .gapCreate
    case ..<90: .gapUpdate
    case ..<93: .gapDelete
    case ..<96: .gapUndelete
    case ..<97: .overflow
    case ..<98: .wildcard
    default: .unknown
    }
  }

  private mutating func fill(_ event: inout SampleEvent, share: Double) {
    func happens(_ share: Double) -> Bool {
      Double.random(in: 0..<1, using: &self.generator) < share
    }
    let isUpdate = event.change == .update
    for name in SampleTables.columns.map(\.name) where happens(share) {
      if isUpdate && happens(0.2) {
        event.values[name] = .null
        if name == "description" { self.descriptions[event.recordID] = nil }
        continue
      }
      let number = Int.random(in: 0..<1000, using: &self.generator)
      switch name {
      case "name": event.values[name] = .text("näme \(number)")
      case "order": event.values[name] = .integer(Int32(number - 500))
      case "tags": event.values[name] = .texts((0..<number % 4).map { "tag\($0)" })
      case "description": event.values[name] = self.description(event, number)
      default: event.values[name] = .number(Double(number) / 4)
      }
    }
  }

  private mutating func description(_ event: SampleEvent, _ number: Int) -> SampleEvent.Value {
    let old = self.descriptions[event.recordID]
    if event.change == .update, let old, number % 4 != 0 {
      var lines = old.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
      let index = number % lines.count
      let removed = lines[index]
      lines[index] = "changed \(number)"
      let new = lines.joined(separator: "\n")
      self.descriptions[event.recordID] = new
      let diff = """
        --- \n+++ \(TextDiffTests.hash(new))
        @@ -\(index + 1) +\(index + 1) @@\n-\(removed)\n+\(lines[index])
        """
      self.texts[diff + old] = new
      return .diff(diff)
    }
    let text = (0..<5).map { "line \($0) of \(number)" }.joined(separator: "\n")
    self.descriptions[event.recordID] = text
    return .text(text)
  }
}

struct SeededGenerator: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    self.state &+= 0x9E37_79B9_7F4A_7C15
    var value = self.state
    value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
    return value ^ (value >> 31)
  }
}
