@testable import Pipeline

/// One event of the scripted log.
struct ScriptedEvent: Sendable, Equatable {
  var replay: Int
  var event: String
  var record: String = ""
  var transaction: String = ""
  var isBroken = false
  /// Decodable only after its schema was fetched again.
  var isOutdated = false
  var isOfOtherSchema = false
  var kind = EventKind.change
  /// Bytes that it takes of the batch besides.
  var byteCount = 0
  /// Milliseconds since 1970; nil for platform events.
  var committedAt: Int64?

  var replayID: ReplayID {
    ReplayID([0, 0, 0, 0, 0, 0, UInt8(self.replay >> 8), UInt8(self.replay & 255), 0, 0])
  }
  var line: String { "\(self.replay)/\(self.event)/\(self.record)" }
}

struct ScriptedResponse: SourceResponse {
  var events: [ScriptedEvent]
  var latest: Int
  var eventCount: Int { self.events.count }
  var latestReplayID: ReplayID { ScriptedEvent(replay: self.latest, event: "").replayID }
  /// All credit used: nothing but silence says that the log has ended.
  var pendingCredit: Int { 0 }
}

/// A topic that behaves as the service does: CUSTOM is exclusive, responses of any size.
final class ScriptedSource: Source, @unchecked Sendable {
  // Used by the test's task only.
  let log: [ScriptedEvent]
  let responseSize: Int
  let topics: [SourceTopic]
  private(set) var starts: [StartPoint?] = []
  /// Start points that are refused once as invalid.
  var refusals = 0
  /// Ends the stream after so many responses, as a broken connection would.
  var breakAfter: Int?
  /// Places in the log before which a response ends; nil: by size.
  var cuts: Set<Int>?
  /// Places in the log where an empty response comes.
  var keepalives: Set<Int> = []
  /// Events before a place to resume after that are delivered again.
  var overlap = 0
  /// When the next response comes, and what is between two of them; nil: they come when they are
  /// sent.
  var arrival: (next: ContinuousClock.Instant, interval: Duration)?
  /// False: consecutive events are decoded one by one.
  var decodesTogether = true
  private(set) var togetherCount = 0
  /// Events of the log that are older than a start at the latest.
  var tip = Int.max
  /// The ID of an empty response that comes when the runner has seen silence and stays.
  var keepalive: Int?
  /// A response whose schema does not come at once.
  struct Held {
    /// Replay ID of its first event.
    var replay: Int
    /// What is signalled meanwhile; nil for silence until the runner's deadline.
    var signals: [SourceSignal<ScriptedResponse>?]
    /// The schema comes in the end.
    var isReleased: Bool
    /// Done before each of the signals.
    var onSignal: (() -> Void)?
    /// No signals come once the source was stopped.
    var endsWithStop = true
  }
  var held: Held?
  /// A second topic, which the service refuses before it delivers its one event.
  struct Refused {
    var times: Int
    var event: ScriptedEvent
    /// The user asks for a stop when the event has come.
    var interrupts = false
  }
  private var refused: Refused?
  /// The first topic is refused, too.
  var refusesAll = false
  private static let refusal: SourceFailure = {
    var failure = SourceFailure(.refused, reason: "topic_not_found", "/data/R: not found")
    failure.isOfTopicAlone = true
    return failure
  }()
  private var rest: ArraySlice<ScriptedEvent> = []
  /// Events that the runner said do not count.
  private(set) var allowed = 0
  /// For how long the runner was ready to wait when there was nothing left, at its longest.
  private(set) var longestWait: Duration?
  private var silences = 0
  private var queue: [SourceSignal<ScriptedResponse>] = []
  private var isStopped = false
  private var hasEnded = false
  let layout: RecordLayout
  private let otherLayout: RecordLayout

  init(
    _ log: [ScriptedEvent], responseSize: Int = 3, isChannel: Bool = false,
    start: StartPoint? = .earliest, refused: Refused? = nil
  ) {
    self.refused = refused
    self.log = log
    self.responseSize = responseSize
    self.topics =
      [SourceTopic(name: "/data/T", isChannel: isChannel, start: start)]
      + (refused == nil ? [] : [SourceTopic(name: "/data/R", isChannel: false, start: start)])
    func layout(_ schemaID: String) -> RecordLayout {
      RecordLayout(
        topic: "/data/T", schemaID: schemaID, entity: "T", family: .changeEvent,
        slotCount: MetadataSlot.count, fieldOrder: [],
        columns: [
          Column(
            name: "_event_id", path: ["_event_id"], content: .slot(MetadataSlot.eventID, .string),
            isMetadata: true)
        ])
    }
    (self.layout, self.otherLayout) = (layout("s"), layout("other"))
    if refused != nil { self.openRefused() }
    self.open()
  }

  private func openRefused() {
    self.queue.append(.opening(topic: 1, reply: { [unowned self] in self.startedRefused(at: $0) }))
  }

  private func startedRefused(at start: StartPoint?) {
    guard start != nil, let refused = self.refused else {
      return self.queue.append(.ended(topic: 1, nil))
    }
    self.queue.append(.opened(topic: 1))
    guard refused.times == 0 else {
      self.refused?.times -= 1
      return self.queue.append(.ended(topic: 1, Self.refusal))
    }
    let response = ScriptedResponse(events: [refused.event], latest: refused.event.replay)
    self.queue.append(.response(topic: 1, response, receivedAt: .now))
    if refused.interrupts { self.queue += [.interrupted, .ended(topic: 1, nil)] }
  }

  func allow(_ count: Int, topic: Int) { self.allowed += count }

  /// Called with each position that the runner says is durable.
  var onDurable: ((ReplayID) -> Void)?
  func becameDurable(_ resume: ReplayID, topic: Int) { self.onDurable?(resume) }

  private func open() {
    self.queue.append(.opening(topic: 0, reply: { [unowned self] in self.started(at: $0) }))
  }

  private func started(at start: StartPoint?) {
    self.starts.append(start)
    guard let start else {
      self.queue.append(.ended(topic: 0, nil))
      return
    }
    if self.refusals > 0 {
      self.refusals -= 1
      let failure = SourceFailure(.invalidReplay, reason: "replay_id_corrupted", "corrupted")
      self.queue.append(.ended(topic: 0, failure))
      return
    }
    if self.refusesAll { return self.queue.append(.ended(topic: 0, Self.refusal)) }
    self.queue.append(.opened(topic: 0))
    switch start {
    case .earliest: self.rest = self.log[...]
    case .latest, .managed: self.rest = self.log.dropFirst(self.tip)
    case .after(let id):
      let last = self.log.lastIndex { $0.replayID == id }
      self.rest = self.log[max(0, (last.map { $0 + 1 } ?? 0) - self.overlap)...]
    }
    self.sendRest()
  }

  private func sendRest() {
    var now: ContinuousClock.Instant { self.arrival?.next ?? sent }
    let sent = ContinuousClock.now
    while let first = self.rest.first {
      if first.replay == self.held?.replay {
        self.queue.append(.holding(topic: 0))
        return
      }
      self.sendKeepalive(before: self.rest.startIndex, at: now)
      let events = Array(self.rest.prefix(self.sizeOfResponse(at: self.rest.startIndex)))
      self.rest = self.rest.dropFirst(events.count)
      if let left = self.breakAfter {
        self.breakAfter = left > 0 ? left - 1 : nil
        if left == 0 {
          let failure = SourceFailure(.unavailable, reason: "unavailable", "broken")
          self.queue.append(.retrying(topic: 0, failure, delay: .zero))
          return self.open()
        }
      }
      let response = ScriptedResponse(events: events, latest: events.last?.replay ?? 0)
      self.queue.append(.response(topic: 0, response, receivedAt: now))
      if let arrival { self.arrival?.next += arrival.interval }
    }
    self.sendKeepalive(before: self.log.count, at: now)
  }

  private func sizeOfResponse(at index: Int) -> Int {
    guard let cuts = self.cuts else { return self.responseSize }
    return (cuts.filter { $0 > index }.min() ?? self.log.count) - index
  }

  private func sendKeepalive(before index: Int, at now: ContinuousClock.Instant) {
    guard self.keepalives.contains(index), index > 0 else { return }
    let empty = ScriptedResponse(events: [], latest: self.log[index - 1].replay)
    self.queue.append(.response(topic: 0, empty, receivedAt: now))
  }

  func next(until deadline: ContinuousClock.Instant) async -> SourceSignal<ScriptedResponse>? {
    if !self.queue.isEmpty { return self.queue.removeFirst() }
    if let held = self.held, !self.isStopped || !held.endsWithStop {
      held.onSignal?()
      if !held.signals.isEmpty { return self.held?.signals.removeFirst() ?? nil }
      if held.isReleased {
        self.held = nil
        self.sendRest()
        return self.queue.removeFirst()
      }
    }
    if !self.isStopped {
      self.silences += 1
      self.longestWait = max(self.longestWait ?? .zero, deadline - .now)
      guard let keepalive = self.keepalive, self.silences == 2 else { return nil }
      let response = ScriptedResponse(events: [], latest: keepalive)
      return .response(topic: 0, response, receivedAt: .now)
    }
    guard !self.hasEnded else { return nil }
    self.hasEnded = true
    return .ended(topic: 0, nil)
  }

  func poll() -> SourceSignal<ScriptedResponse>? {
    self.queue.isEmpty ? nil : self.queue.removeFirst()
  }

  /// Waits without taking anything so far.
  private(set) var waitCount = 0
  /// Done at each of them, with their number from 0; true asks for a clean stop.
  var onWait: ((Int) -> Bool)?

  func interruption(until deadline: ContinuousClock.Instant) async -> Bool {
    self.waitCount += 1
    if let onWait { return onWait(self.waitCount - 1) }
    return false
  }

  /// What had been received already is still handed on, as by the real source.
  func stop() { self.isStopped = true }

  func reopen(topic: Int) { if topic == 0 { self.open() } else { self.openRefused() } }

  /// The service has another schema for outdated events.
  var givesNewSchema = true
  private(set) var renewals = 0
  private var hasNewSchema = false

  func renewSchema(
    ofEvent index: Int, of response: ScriptedResponse, topic: Int,
    receivedAt: ContinuousClock.Instant
  ) async {
    self.renewals += 1
    self.hasNewSchema = self.givesNewSchema
  }

  func layout(
    ofEvent index: Int, of response: ScriptedResponse, topic: Int
  ) throws(UndecodableEvent) -> RecordLayout {
    response.events[index].isOfOtherSchema ? self.otherLayout : self.layout
  }

  func decode(
    consecutive events: Range<Int>, of response: ScriptedResponse, topic: Int,
    into batch: RecordBatch
  ) {
    for index in events where self.decodesTogether {
      guard !batch.isLarge,
        (try? self.layout(ofEvent: index, of: response, topic: topic)) === batch.layout,
        (try? self.decode(event: index, of: response, topic: topic, into: batch)) != nil
      else { return }
      self.togetherCount += 1
    }
  }

  func decode(
    event index: Int, of response: ScriptedResponse, topic: Int, into batch: RecordBatch
  ) throws(UndecodableEvent) {
    let event = response.events[index]
    if event.isOutdated, !self.hasNewSchema {
      throw UndecodableEvent(reason: "outdated", isOfOutdatedSchema: true)
    }
    if event.isBroken { throw UndecodableEvent(reason: "broken", fieldPath: "A.B", offset: 3) }
    let row = batch.addRow()
    func set(_ slot: Int, _ text: String) -> RecordBatch.Range {
      let range = Array(text.utf8).withUnsafeBufferPointer { batch.append($0) }
      batch.row(row).cells[slot] = range.cell
      batch.row(row).presence[slot] = RecordBatch.Presence.value
      return range
    }
    if event.byteCount > 0 {
      _ = batch.reserveArena(event.byteCount)
      _ = batch.commitArena(event.byteCount)
    }
    let replayID = event.replayID.bytes.withUnsafeBufferPointer { batch.append($0) }
    let eventID = set(MetadataSlot.eventID, event.event)
    if !event.record.isEmpty { _ = set(MetadataSlot.recordID, event.record) }
    batch.events.append(
      RecordBatch.Event(
        firstRow: row, rowCount: 1, replayID: replayID, eventID: eventID,
        transactionKey: set(MetadataSlot.transactionKey, event.transaction),
        commitTimestamp: event.committedAt, kind: event.kind))
  }

  func rawEvent(_ index: Int, of response: ScriptedResponse) -> RawEvent {
    let event = response.events[index]
    return RawEvent(
      replayID: event.replayID.bytes, eventID: Array(event.event.utf8), schemaID: "s",
      payload: [1])
  }
}
