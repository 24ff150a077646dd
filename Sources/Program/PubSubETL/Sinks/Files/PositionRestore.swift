import FileSink
import Pipeline

/// Finds the position of one topic again in what the manifests say, for a checkpoint that is lost.
///
/// Files in progress are not counted on: recovery removes those that no checkpoint knows, and their
/// events are read again. Ordinals count the events of an epoch from 0, so the numbers of events in
/// the manifests show whether files in progress held events from before the last finished one.
struct PositionRestore {
  enum Outcome: Equatable {
    /// The next run resumes after the last finished file: nothing lost, nothing twice.
    case goesOn(TopicPosition)
    /// Some events are exported again, in a new epoch. Why, and which.
    case readsAgain(TopicPosition, String)
    /// Nothing was exported.
    case nothing
  }

  var topic: String
  var isChannel: Bool
  /// Finished files of the topic by sink, and of dead letters; in any order.
  var sinks: [[ExportedFile]]
  var deadLetters: [ExportedFile]
  /// Commit times before it are out of the service's retention: `2026-02-17T04:03:15.000Z`.
  var retainedSince: String

  /// An event whose place in the stream is known.
  private struct Place {
    var replayID: String
    var ordinal: Int64
    var committed: String?
  }

  var outcome: Outcome {
    let all = self.sinks.flatMap { $0 } + self.deadLetters
    guard let epoch = all.map(\.epoch).max() else { return .nothing }
    let letters = self.deadLetters.filter { $0.epoch == epoch }
    let sinks = self.sinks.map { $0.filter { $0.epoch == epoch } }
    let files = sinks.flatMap { $0 } + letters
    // At least one file is of the newest epoch.
    let last = files.map(\.lastOrdinal).max() ?? 0
    let covered = sinks.map { self.coveredThrough($0, letters) }.min() ?? -1
    if covered == last, let position = self.end(epoch: epoch, last: last, files: files) {
      return self.unlessTooOld(position, files: files)
    }
    guard
      let place = self.places(files).filter({ $0.ordinal <= covered }).max(by: {
        $0.ordinal < $1.ordinal
      }), let replayID = ReplayID(hex: place.replayID)
    else {
      return .readsAgain(
        TopicPosition(beginningEpoch: epoch + 1, start: .earliest),
        "the finished files do not show up to which event everything was exported; epoch "
          + "\(epoch + 1) begins with the oldest event that the service keeps, so events of "
          + "epoch \(epoch) are exported again")
    }
    guard !self.isTooOld(place.committed) else { return self.tooOld(epoch: epoch) }
    return .readsAgain(
      TopicPosition(beginningEpoch: epoch + 1, after: replayID),
      "some events from before the last finished file were in files in progress, or are dead letters. "
        + "Epoch \(epoch + 1) resumes after event \(place.ordinal) of epoch \(epoch). Events after it, up to "
        + "\(last), are exported again, with the same _event_id and _record_id")
  }

  /// The last ordinal up to which every event is in a finished file; -1 for none.
  ///
  /// - Parameter letters: a letter that only a database refused is in the sink's files too.
  private func coveredThrough(_ own: [ExportedFile], _ letters: [ExportedFile]) -> Int64 {
    let files = (own.map { ($0, false) } + letters.map { ($0, true) })
      .sorted { $0.0.firstOrdinal < $1.0.firstOrdinal }
    var covered: Int64 = -1
    var index = 0
    while index < files.count {
      // Files of several entities or dates overlap: together they have to be complete.
      var high = files[index].0.lastOrdinal
      var (ownEvents, letterEvents): (Int64, Int64) = (0, 0)
      var end = index
      while end < files.count, files[end].0.firstOrdinal <= high {
        let (file, isLetters) = files[end]
        high = max(high, file.lastOrdinal)
        if isLetters { letterEvents += file.events } else { ownEvents += file.events }
        end += 1
      }
      let low = files[index].0.firstOrdinal
      let isComplete =
        low == covered + 1
        && [ownEvents, ownEvents + letterEvents].contains(high - low + 1)
      // What is missing beside events that the service does not keep any more cannot be read again.
      let isPast = files[index..<end].allSatisfy { self.isTooOld($0.0.lastCommitTimestamp) }
      guard isComplete || isPast else { break }
      covered = high
      index = end
    }
    return covered
  }

  /// The position after the last event; nil on a channel when it may be inside a group of events
  /// with one replay ID whose start is not known.
  private func end(epoch: Int, last: Int64, files: [ExportedFile]) -> TopicPosition? {
    guard let file = files.first(where: { $0.lastOrdinal == last }),
      let lastID = ReplayID(hex: file.lastReplayID)
    else { return nil }
    let group = file.tail.flatMap { $0.ordinal == last ? $0.group : nil } ?? []
    let event = TopicPosition.LastEvent(
      replayID: lastID, eventID: Array((group.last?.eventID ?? "").utf8))
    guard self.isChannel else {
      return TopicPosition(
        restoring: epoch, nextOrdinal: last + 1, resume: lastID, lastEvent: event)
    }
    guard !group.isEmpty else { return nil }
    let before = last - Int64(group.count)
    let closed = self.places(files).first {
      $0.ordinal == before && $0.replayID != file.lastReplayID
    }
    guard let resume = closed.flatMap({ ReplayID(hex: $0.replayID) }) else { return nil }
    return TopicPosition(
      restoring: epoch, nextOrdinal: last + 1, resume: resume, lastEvent: event,
      group: group.map {
        StreamCursor.RowKey(eventID: Array($0.eventID.utf8), recordIDs: Array($0.recordIDs.utf8))
      })
  }

  /// Places after which a stream may begin. CUSTOM is exclusive, so on a channel only those that are
  /// known to be the last with their ID.
  private func places(_ files: [ExportedFile]) -> [Place] {
    var places: [Place] = []
    var firsts: [Int64: String] = [:]
    for file in files { firsts[file.firstOrdinal] = file.firstReplayID }
    for file in files {
      if let after = file.tail?.after, let ordinal = file.tail?.afterOrdinal {
        places.append(
          Place(replayID: after, ordinal: ordinal, committed: file.lastCommitTimestamp))
      }
      let next = firsts[file.lastOrdinal + 1]
      guard !self.isChannel || (next.map { $0 != file.lastReplayID } ?? false) else { continue }
      places.append(
        Place(
          replayID: file.lastReplayID, ordinal: file.lastOrdinal,
          committed: file.lastCommitTimestamp))
    }
    return places
  }

  private func isTooOld(_ time: String?) -> Bool { time.map { $0 < self.retainedSince } ?? false }

  private func unlessTooOld(_ position: TopicPosition, files: [ExportedFile]) -> Outcome {
    let newest = files.compactMap(\.lastCommitTimestamp).max()
    return self.isTooOld(newest) ? self.tooOld(epoch: position.epoch) : .goesOn(position)
  }

  private func tooOld(epoch: Int) -> Outcome {
    .readsAgain(
      TopicPosition(beginningEpoch: epoch + 1, start: .earliest),
      "the last exported event is older than the 72 h for which the service keeps replay IDs, "
        + "so the run cannot resume after it; epoch \(epoch + 1) begins with the oldest event "
        + "that the service keeps, and events before it may be missing")
  }
}
