internal import Pipeline

/// The content of a commit, except its rows, which are in `PendingRows`.
struct OpenCommit {
  /// Events that could not become rows.
  var refused: [RefusedEvent] = []
  /// The notes about them, and the rows among which they had their places.
  var letters: [(rows: PendingRows, entry: ResyncTable.Entry)] = []
  /// Events of dead letters; the replay ID is hexadecimal.
  var redriven: [(place: EventPlace, eventID: String, replayID: String)] = []
  /// The progress of passes, by `ReadPass.key`.
  var passes: [String: ReadPass] = [:]
  /// IDs of records that were not found, and the event after which they were requested, by object.
  var unseen: [String: (records: [String], epoch: Int, ordinal: Int64)] = [:]
  /// Records that were read and have no row, by object.
  var unreadable: [String: [UnreadableRecord]] = [:]
  /// Changes of an object that the tables lack, since the stages leave the object out: the first of a
  /// run.
  var leftOut: [(entity: String, entry: ResyncTable.Entry)] = []
  var repairCalls = 0
}

/// Identifies an event of a commit.
struct EventPlace: Hashable {
  var topic: String
  var epoch: Int
  var ordinal: Int64
}

extension EventPlace {
  init(_ event: RefusedEvent) {
    self.init(topic: event.topic, epoch: event.epoch, ordinal: event.ordinal)
  }
}
