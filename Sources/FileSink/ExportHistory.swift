internal import JSON
internal import Pipeline

/// What the manifest says an earlier run of this pipeline exported from this org.
public struct ExportHistory: Sendable, Equatable {
  public struct Topic: Sendable, Equatable {
    /// The highest epoch; a run that begins anew has to take a higher one.
    public var epoch: Int
    /// The last event of that epoch in a finished file.
    public var lastOrdinal: Int64
    /// Its replay ID, hexadecimal.
    public var lastReplayID: String
    public var fileCount: Int
    public var eventCount: Int
  }

  public internal(set) var topics: [String: Topic] = [:]

  public var isEmpty: Bool { self.topics.isEmpty }

  /// Counts a line of the manifest, when it is one of this pipeline and org.
  mutating func add(_ line: UnsafeBufferPointer<UInt8>, identity: SegmentIdentity) {
    guard let json = try? JSONValue(parsing: Array(line)),
      json["pipeline"]?.string == identity.pipeline, json["org"]?.string == identity.org,
      let topic = json["topic"]?.string, let epoch = json["epoch"]?.integer,
      let lastOrdinal = json["last_ordinal"]?.integer,
      let lastReplayID = json["last_replay_id"]?.string, let events = json["events"]?.integer
    else { return }
    var entry =
      self.topics[topic]
      ?? Topic(
        epoch: 0, lastOrdinal: -1, lastReplayID: "", fileCount: 0, eventCount: 0)
    entry.fileCount += 1
    entry.eventCount += Int(events)
    if (Int(epoch), lastOrdinal) > (entry.epoch, entry.lastOrdinal) {
      entry.epoch = Int(epoch)
      entry.lastOrdinal = lastOrdinal
      entry.lastReplayID = lastReplayID
    }
    self.topics[topic] = entry
  }
}
