internal import DurableFiles
internal import JSON
internal import Pipeline

/// A finished file as described by its line in the manifest.
package struct ExportedFile: Sendable, Equatable {
  package enum Kind: Sendable {
    /// Number of events without the `redriven` ones.
    case records
    /// Events that came from the dead letters.
    case redriven
    /// Records that were read.
    case snapshots
    case deadLetters
  }

  /// Relative to the sink's directory.
  package var name: String
  package var org: String
  package var topic: String
  package var events: Int64
  package var lines: Int64
  /// Compressed.
  package var bytes: Int64
  package var epoch: Int
  package var firstOrdinal: Int64
  package var lastOrdinal: Int64
  /// Hexadecimal; empty for records that were read.
  package var firstReplayID: String
  package var lastReplayID: String
  /// Hexadecimal.
  package var sha256: String?
  /// The newest commit time in the file, `2026-02-17T04:03:15.000Z`; nil without change events.
  package var lastCommitTimestamp: String?

  /// The stream's position after the last event; nil for dead letters and for files of versions
  /// that did not store it.
  package var tail: Tail?

  package struct Tail: Sendable, Equatable {
    package struct Row: Sendable, Equatable {
      package var eventID: String
      /// Joined.
      package var recordIDs: String
    }

    /// The ordinal of the last event.
    package var ordinal: Int64
    /// Hexadecimal replay ID of the last event before those with the last ID, and its ordinal.
    package var after: String?
    package var afterOrdinal: Int64?
    /// The events with the last ID that the writing run knew.
    package var group: [Row]
  }

  /// Numbers of events, lines and bytes that can be added up.
  static let counts: ClosedRange<Int64> = 0...1 << 48
  /// Events, bytes or lines of one file. Sums over a manifest of many gigabytes do not overflow.
  private static let sizes: ClosedRange<Int64> = 0...1 << 36

  init?(json: JSONValue) {
    let isSnapshot = json["snapshot"]?.members != nil
    guard let name = json["name"]?.string, let org = json["org"]?.string,
      let topic = json["topic"]?.string, let events = json["events"]?.integer,
      let bytes = json["bytes"]?.integer, let epoch = json["epoch"]?.integer,
      let firstOrdinal = json["first_ordinal"]?.integer,
      let lastOrdinal = json["last_ordinal"]?.integer ?? (isSnapshot ? firstOrdinal : nil),
      let firstReplayID = json["first_replay_id"]?.string ?? (isSnapshot ? "" : nil),
      let lastReplayID = json["last_replay_id"]?.string ?? (isSnapshot ? "" : nil)
    else { return nil }
    self.lines = json["lines"]?.integer ?? events
    guard [events, bytes, self.lines].allSatisfy(Self.sizes.contains) else { return nil }
    self.name = name
    self.org = org
    self.topic = topic
    self.events = events
    self.bytes = bytes
    self.epoch = Int(epoch)
    self.firstOrdinal = firstOrdinal
    self.lastOrdinal = lastOrdinal
    self.firstReplayID = firstReplayID
    self.lastReplayID = lastReplayID
    self.sha256 = json["sha256"]?.string
    self.lastCommitTimestamp = json["last_commit_timestamp"]?.string
    self.tail = json["resume"].flatMap(Tail.init)
  }

  /// Which files of the manifest are visited: compaction replaces many by one.
  package enum Scope: Sendable {
    /// Those that were not replaced.
    case present
    /// Those that runs wrote, replaced or not: they have the same events.
    case written
  }

  /// Visits the finished files of one pipeline in a directory, in the order of the manifest. Takes
  /// no lock and writes nothing, so it can be used during a run.
  ///
  /// - Parameter directory: the directory of a sink or of the dead letters, absolute; without a
  ///   manifest, it has no files.
  /// - Throws: `FileSinkError.inconsistent` for a manifest that was edited, `.io`.
  package static func visit(
    _ kind: Kind, in directory: String, pipeline: String, _ scope: Scope = .present,
    _ body: (ExportedFile) -> Void
  ) throws(FileSinkError) {
    let family: SegmentKind = kind == .deadLetters ? .deadLetters : .records
    let matcher = SegmentName.Matcher(kind: family, pipeline: pipeline)
    let list = try FileList(in: directory, pipeline: pipeline, family)
    func visit(_ line: UnsafeBufferPointer<UInt8>, _ name: UnsafeBufferPointer<UInt8>) {
      let start = name.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0
      guard let parsed = matcher.parse(UnsafeBufferPointer(rebasing: name[start...])),
        (parsed.pass != nil) == (kind == .snapshots),
        scope == .present || parsed.compaction == 0,
        let json = try? JSONValue(parsing: Array(line)), json["pipeline"]?.string == pipeline,
        (json["redriven"]?.boolean == true) == (kind == .redriven),
        let file = ExportedFile(json: json)
      else { return }
      body(file)
    }
    switch scope {
    case .present: try list.visitPresent(visit)
    case .written: try list.visitAll(visit)
    }
  }
}

extension ExportedFile.Tail {
  fileprivate init?(json: JSONValue) {
    guard let ordinal = json["ordinal"]?.integer, let group = json["group"]?.array else {
      return nil
    }
    self.ordinal = ordinal
    self.after = json["after"]?.string
    self.afterOrdinal = json["after_ordinal"]?.integer
    self.group = []
    for row in group {
      guard let pair = row.array, pair.count == 2, let event = pair[0].string,
        let records = pair[1].string
      else { return nil }
      self.group.append(Row(eventID: event, recordIDs: records))
    }
  }
}
