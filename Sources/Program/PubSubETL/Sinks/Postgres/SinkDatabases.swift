internal import Bytes
internal import Checkpoint
import FileSink
import JSON
import Pipeline
import PostgresSink

/// The databases of a pipeline's postgres sinks, for commands that look at positions or set them.
struct SinkDatabases {
  struct Entry {
    var name: String
    var schema: String
    /// Nil when the database has no position of the sink.
    var state: DatabaseState?
    /// Nil unless it was asked for, and where the schema has no tables of this program.
    var orgState: CheckpointTable.OrgState?
    fileprivate var stored: CheckpointTable

    /// By topic; nil when the sink has no position.
    var positions: [String: TopicPosition]? { self.state?.positions }

    /// It has something that a change to an org replaces, or that keeps the org away.
    func isConcerned(_ org: String) -> Bool {
      if self.state != nil { return true }
      guard let orgs = self.orgState?.orgs else { return false }
      return !orgs.isEmpty && !orgs.contains(org)
    }
  }

  private(set) var entries: [Entry] = []

  /// Connects to each and reads its positions.
  ///
  /// - Parameter readsOrgs: also of which orgs the tables are, and their newest epochs, which reads whole
  ///   tables.
  /// - Throws: `RunFailure` naming the sink.
  init(_ configuration: PipelineConfiguration, readsOrgs: Bool = false) throws {
    for settings in configuration.postgresSinks {
      do {
        let stored = try CheckpointTable(
          pipeline: configuration.name, sink: settings.name, settings.sink)
        self.entries.append(
          Entry(
            name: settings.name, schema: settings.sink.schema, state: try stored.read(),
            orgState: readsOrgs ? try stored.orgState() : nil, stored: stored))
      } catch {
        var failure = RunFailure(error)
        failure.message = "sink '\(settings.name)': \(failure.message)"
        throw failure
      }
    }
  }

  var hasPositions: Bool { self.entries.contains { $0.state != nil } }

  /// The highest epoch of a topic in any of them; 0 without one.
  func highestEpoch(ofTopic topic: String) -> Int {
    self.entries.compactMap { $0.state?.positions[topic]?.epoch }.max() ?? 0
  }

  /// - Throws: `RunFailure` (65) when one belongs to another org.
  func checkOrg(_ org: String) throws {
    for entry in self.entries {
      guard let state = entry.state, state.org != org else { continue }
      throw RunFailure(
        .otherOrg,
        "the positions of sink '\(entry.name)' in its database belong to org \(state.org), but "
          + "those of the checkpoint belong to org \(org); nothing was changed. \(OrgChange.remedy)"
      )
    }
  }

  /// - Throws: `LeaseError` while another host runs the pipeline.
  func checkLeases(_ owner: RunOwner) throws {
    for entry in self.entries {
      if let state = entry.state { try entry.stored.checkLease(state, owner: LeaseOwner(owner)) }
    }
  }

  /// Sets positions, by topic, where there are any. `commit` makes it durable; without it nothing
  /// is changed.
  func set(_ positions: [String: TopicPosition], owner: RunOwner, command: String) throws {
    guard !positions.isEmpty else { return }
    for entry in self.entries {
      guard let state = entry.state else { continue }
      try entry.stored.set(positions, expecting: state, owner: LeaseOwner(owner), command: command)
    }
  }

  /// Has every database that holds something of an org continue with another, each in a transaction of its
  /// own. Durable on return.
  func accept(
    org: String, _ positions: [String: TopicPosition], reading entities: [String],
    owner: RunOwner, command: String
  ) throws {
    for entry in self.entries where entry.isConcerned(org) {
      do {
        try entry.stored.accept(
          org: org, positions, reading: entities, expecting: entry.state,
          owner: LeaseOwner(owner), command: command)
        try entry.stored.commit()
      } catch {
        var failure = RunFailure(error)
        failure.message =
          "sink '\(entry.name)': \(failure.message); the checkpoint is unchanged; run the command again"
        throw failure
      }
    }
  }

  /// Durable on return. Safe to repeat.
  func drop(_ letters: [CheckpointTable.LetterPlace]) throws {
    for entry in self.entries {
      do {
        try entry.stored.drop(letters)
      } catch {
        var failure = RunFailure(error)
        failure.message =
          "sink '\(entry.name)': \(failure.message); no letter was dropped; run the command again"
        throw failure
      }
    }
  }

  /// As `drop`, for letters that cannot be read.
  ///
  /// - Parameter topics: all topics of the pipeline, for letters of which nothing is known.
  func drop(_ lost: [LostLetters], topics: [String]) throws {
    for entry in self.entries {
      do {
        for letters in lost {
          if let range = letters.range {
            try entry.stored.drop(
              topic: range.topic, (range.epoch, range.ordinals), but: letters.waitingReplayIDs)
          } else {
            for topic in topics { try entry.stored.drop(topic: topic, nil, but: []) }
          }
        }
      } catch {
        var failure = RunFailure(error)
        failure.message =
          "sink '\(entry.name)': \(failure.message); the lost letters still wait; run again"
        throw failure
      }
    }
  }

  /// - Throws: `RunFailure`: whether this database has changed is not known, others may have.
  func commit() throws {
    for entry in self.entries {
      do {
        try entry.stored.commit()
      } catch {
        var failure = RunFailure(error)
        failure.message =
          "sink '\(entry.name)': \(failure.message); the checkpoint has the new position, but "
          + "the database may not; run the command again"
        throw failure
      }
    }
  }

  /// What a checkpoint would be a copy of: of each topic the position furthest behind.
  func document(_ configuration: PipelineConfiguration) -> CheckpointDocument {
    let states = self.entries.compactMap(\.state)
    var positions: [String: TopicPosition] = [:]
    for state in states {
      positions.merge(state.positions) {
        ($1.epoch, $1.nextOrdinal) < ($0.epoch, $0.nextOrdinal) ? $1 : $0
      }
    }
    return CheckpointDocument(
      pipeline: configuration.name, org: states.first?.org ?? "",
      topics: positions, sinks: self.documentStates)
  }

  /// Members of a checkpoint's `sinks`, as runs store them.
  var documentStates: [String: SinkState] {
    var states: [String: SinkState] = [:]
    for entry in self.entries where entry.state != nil {
      states[entry.name] = Self.documentState(schema: entry.schema)
    }
    return states
  }

  static func documentState(schema: String) -> SinkState {
    SinkState(["type": "postgres", "schema": .string(schema)])
  }

  /// Lines of a label and a value, for people.
  var lines: [(label: String, value: String)] {
    var lines: [(label: String, value: String)] = []
    for entry in self.entries {
      lines.append(("database", "\(entry.name): schema \(entry.schema)"))
      guard let state = entry.state else {
        lines.append(("", "no position stored"))
        continue
      }
      lines.append(("", "committed \(UTCTime.timestamp(milliseconds: state.committedAt))"))
      lines.append(("", PostgresStatus.lease(state)))
      for (topic, position) in state.positions.sorted(by: { $0.key < $1.key }) {
        lines.append(("", "\(topic): \(PipelineStatus.lines(position).joined(separator: ", "))"))
      }
    }
    return lines
  }

  /// By name: positions as stored, org, owner and lease.
  var json: JSONValue {
    JSONValue(
      .object(
        self.entries.map { entry in
          JSONMember(
            entry.name,
            entry.state.map { state -> JSONValue in
              let topics = state.positions.sorted { $0.key < $1.key }
                .map { JSONMember($0.key, $0.value.json) }
              return [
                "schema": .string(entry.schema), "org": .string(state.org),
                "topics": JSONValue(.object(topics)), "owner": .string(state.owner),
                "fence": .integer(state.fence), "leased": .boolean(state.isLeased),
                "lease_until": .string(UTCTime.timestamp(milliseconds: state.leaseUntil)),
                "committed_at": .string(UTCTime.timestamp(milliseconds: state.committedAt)),
              ]
            } ?? nil)
        }))
  }
}
