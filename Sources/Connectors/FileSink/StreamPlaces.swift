internal import JSON
internal import Pipeline

/// The place of the next event of each topic, and of the last event that the files lack.
///
/// The place of a line follows from its file's name and its number in the file, unless an event
/// before it is missing, because it became a dead letter. Stored in the checkpoint, because files
/// may be continued by later runs.
struct StreamPlaces: Equatable {
  private struct Place: Equatable {
    var epoch: Int
    var nextOrdinal: Int64
    var lastHole: Int64?
  }

  /// By topic.
  private var topics: [String: Place] = [:]

  init() {}

  /// The ordinal of a topic's next event, if no event is missing before it; nil if unknown.
  func nextOrdinal(ofTopic topic: String, epoch: Int) -> Int64? {
    self.topics[topic].flatMap { $0.epoch == epoch ? $0.nextOrdinal : nil }
  }

  mutating func advance(_ topic: String, epoch: Int, to nextOrdinal: Int64) {
    self.set(topic, epoch: epoch, to: nextOrdinal, lastHole: nil)
  }

  /// Notes that the event before `ordinal` is missing.
  mutating func noteHole(inTopic topic: String, epoch: Int, before ordinal: Int64) {
    self.set(topic, epoch: epoch, to: ordinal, lastHole: ordinal - 1)
  }

  /// Events of a channel come one by one. Unlike a change of the value in its place, storing it
  /// allocates nothing.
  private mutating func set(
    _ topic: String, epoch: Int, to nextOrdinal: Int64, lastHole: Int64?
  ) {
    var place = Place(epoch: epoch, nextOrdinal: nextOrdinal, lastHole: lastHole)
    if lastHole == nil, let known = self.topics[topic], known.epoch == epoch {
      place.lastHole = known.lastHole
    }
    self.topics[topic] = place
  }

  /// Whether an event is missing from a file that began with an ordinal and is still open.
  func hasHole(inTopic topic: String, epoch: Int, since ordinal: Int64) -> Bool {
    guard let place = self.topics[topic], place.epoch == epoch else { return false }
    return place.lastHole.map { $0 > ordinal } ?? false
  }
}

extension StreamPlaces {
  static let key = "places"

  var json: JSONValue {
    JSONValue(
      .object(
        self.topics.sorted { $0.key < $1.key }.map { topic, place in
          JSONMember(
            topic,
            [
              "epoch": .integer(place.epoch), "next_ordinal": .integer(place.nextOrdinal),
              "last_hole": place.lastHole.map { .integer($0) } ?? nil,
            ])
        }))
  }

  /// The places in a sink's state; none if no file was continued.
  ///
  /// - Throws: `FileSinkError.inconsistent` for anything that `json` does not produce.
  init(in state: JSONValue?) throws(FileSinkError) {
    for member in state?[Self.key]?.members ?? [] {
      guard let epoch = member.value["epoch"]?.integer, ExportedFile.counts.contains(epoch),
        let next = member.value["next_ordinal"]?.integer, ExportedFile.counts.contains(next)
      else { throw SegmentRecord.damaged }
      var place = Place(epoch: Int(epoch), nextOrdinal: next)
      place.lastHole = member.value["last_hole"]?.integer
      self.topics[member.name] = place
    }
  }
}
