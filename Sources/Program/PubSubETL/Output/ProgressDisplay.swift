/// The live lines of a run on a terminal: the progress of each topic and of each sink,
/// and what the run waits for. A value without clock and output: give it snapshots, show what it
/// returns.
struct ProgressDisplay {
  /// Shortest time between two drawings.
  static let interval = Duration.milliseconds(200)
  /// More topics are one line together.
  private static let maxTopics = 12

  private var paces: [String: ProgressPace] = [:]
  private var lastDrawn: Duration?

  /// Whether the last lines are old enough.
  func isDue(at time: Duration) -> Bool {
    self.lastDrawn.map { time - $0 >= Self.interval } ?? true
  }

  /// The lines to show.
  ///
  /// - Parameters:
  ///   - time: since the run began, by a monotonic clock.
  ///   - wallTime: milliseconds since 1970, for the age of the newest change.
  ///   - size: of the terminal; lines that are wider or more than that could not be erased.
  mutating func lines(
    _ snapshot: ProgressSnapshot, at time: Duration, wallTime: Int64,
    size: (columns: Int, rows: Int)
  ) -> [String] {
    self.lastDrawn = time
    for topic in snapshot.topics {
      self.paces[topic.name, default: ProgressPace()].note(
        events: topic.events, newestCommit: topic.newestCommit, at: time)
    }
    let width = max(0, size.columns - 1)
    let failure = snapshot.failure.map { ProgressLine.text($0, width: width) }
    if let activity = snapshot.activity {
      return [failure ?? ProgressLine.fitted("\(activity) …", width: width)]
    }
    var rest: [String] = []
    let records = snapshot.records.map { ProgressLine.text($0, width: width) }
    rest += [records, failure].compactMap { $0 }
    let room = max(1, size.rows - 1)
    rest = Array(rest.suffix(room - 1))
    let sinks = snapshot.sinks.prefix(max(0, room - 1 - rest.count))
    let topicRoom = min(Self.maxTopics, max(1, room - rest.count - sinks.count))
    let hasOthers = snapshot.topics.count > topicRoom
    let topics = snapshot.topics.prefix(hasOthers ? topicRoom - 1 : topicRoom)
    var names = ProgressLine.names(topics.map(\.name) + sinks.map(\.name))[...]
    var lines = topics.map { topic in
      ProgressLine.text(
        topic, self.paces[topic.name] ?? ProgressPace(), wallTime: wallTime,
        name: names.removeFirst(), width: width)
    }
    if hasOthers {
      lines.append(
        ProgressLine.text(others: snapshot.topics.dropFirst(topics.count), width: width))
    }
    lines += sinks.map { ProgressLine.text($0, name: names.removeFirst(), width: width) }
    return lines + rest
  }
}
