internal import Bytes
import FileSink
import JSON
import Pipeline

/// Watches the stages of a dry run and keeps what they make of each event, until it is taken.
///
/// Used by one thread at a time.
final class EventTraces {
  private struct Key: Hashable {
    var topic: String
    var ordinal: Int64
  }

  /// The rows of an event with many or large ones are shown in part.
  private static let maxRowCount = 100
  private static let maxRowsByteCount = 1 << 20

  private let stages: RunStages
  private let sinks: [String]
  private let showsMasked: Bool
  private var traces: [Key: EventTrace] = [:]
  /// Rows of each event that are shown.
  private var rowLimits: [Key: Int] = [:]
  private var encoders = LayoutCache<NDJSONEncoder>()
  /// What is hidden in the chain at hand, before its stages and behind each; nil: everything.
  private var concealed: [Set<Int>]?
  /// Stages of the chain at hand that have been left.
  private var level = 0
  /// The rows of the events at hand behind the last stage: as they are shown, and as they are.
  private var current: [Int64: (shown: RowSnapshot, rows: [JSONValue])] = [:]

  /// - Parameter sinks: names, in the order of the pipeline file.
  init(_ stages: RunStages, sinks: [String], showsMasked: Bool) {
    self.stages = stages
    self.sinks = sinks
    self.showsMasked = showsMasked
    for chain in [stages.pipeline] + stages.sinks.values { chain.observer = self }
  }

  /// The events since the last call, in the order of each topic.
  func take() -> [EventTrace] {
    defer {
      self.traces.removeAll()
      self.rowLimits.removeAll()
    }
    return self.traces.values.sorted { ($0.topic, $0.ordinal) < ($1.topic, $1.ordinal) }
  }

  /// An event that could not be decoded, or that a stage has refused.
  func refuse(_ letter: DeadLetter) {
    let key = Key(topic: letter.topic, ordinal: letter.ordinal)
    guard self.traces[key] == nil else { return }
    var reason = letter.reason
    if let path = letter.fieldPath { reason += ", field \(path)" }
    if let offset = letter.byteOffset { reason += ", byte \(offset)" }
    self.traces[key] = EventTrace(
      topic: letter.topic, replayID: letter.replayID.hex, eventID: letter.eventID,
      schemaID: letter.schemaID, ordinal: letter.ordinal,
      sinks: self.sinks.map { SinkOutcome(name: $0) }, refusal: reason)
  }

  /// Has a sink say what it would write of a batch that has passed its stages.
  func preview(_ batch: RecordBatch, in sink: String, _ preview: any LinePreview) throws {
    for index in batch.events.indices {
      let event = batch.events[index]
      let key = Key(topic: batch.layout.topic, ordinal: event.ordinal)
      guard let place = self.place(of: sink), let limit = self.rowLimits[key] else { continue }
      // No more rows are made than are shown.
      batch.events[index].rowCount = min(event.rowCount, limit)
      defer { batch.events[index].rowCount = event.rowCount }
      var outcome = self.traces[key]?.sinks[place] ?? SinkOutcome(name: sink)
      do {
        outcome.lines = try preview.lines(ofEvent: index, of: batch)
        outcome.linesNotShown = event.rowCount - batch.events[index].rowCount
      } catch let error as RefusedLine {
        outcome.refusal = error.reason
      } catch is JSONError {
        // A map with one key twice, or text that grows beyond what is read again when it is escaped.
        outcome.linesNotShown = event.rowCount
      }
      self.traces[key]?.sinks[place] = outcome
    }
  }

  private func place(of sink: String) -> Int? { self.sinks.firstIndex(of: sink) }

  // MARK: Rows

  /// The rows of an event; those that cannot be read again as JSON are null.
  private func snapshot(
    of event: RecordBatch.Event, in batch: RecordBatch, limit: Int, _ hidden: HiddenColumns
  ) -> (shown: RowSnapshot, rows: [JSONValue]) {
    let encoder = self.encoders[batch.layout] ?? NDJSONEncoder(layout: batch.layout)
    self.encoders.insert(encoder, for: batch.layout)
    let rows = event.rows.prefix(limit).map { row in
      var line = ByteBuffer(capacity: 1024)
      encoder.append(row: row, of: batch, to: &line)
      return (try? JSONValue(parsing: Array(line.bytes))) ?? JSONValue(.null)
    }
    let shown = RowSnapshot(
      layout: batch.layout, rows: rows.map { hidden.hiding($0) }, count: event.rowCount,
      hidden: hidden.names)
    return (shown, rows)
  }

  private static func changes(
    _ before: [JSONValue], _ after: [JSONValue], among names: Set<String>
  ) -> Set<String> {
    names.filter { name in
      zip(before, after).contains { before, after in
        before[name].map { $0 != after[name] } ?? false
      }
    }
  }

  private func hidden(in layout: RecordLayout) -> HiddenColumns {
    HiddenColumns(
      of: layout, slots: self.showsMasked ? [] : self.concealed.map { $0[self.level] })
  }

  private func rowLimit(of event: RecordBatch.Event, in batch: RecordBatch) -> Int {
    guard event.rowCount > 1 else { return 1 }
    let encoder = self.encoders[batch.layout] ?? NDJSONEncoder(layout: batch.layout)
    self.encoders.insert(encoder, for: batch.layout)
    var line = ByteBuffer(capacity: 1024)
    encoder.append(row: event.firstRow, of: batch, to: &line)
    return max(1, min(Self.maxRowCount, Self.maxRowsByteCount / line.bytes.count))
  }
}

extension EventTraces: StageObserver {
  func willEnter(_ chain: StageChain, _ batch: RecordBatch) {
    self.level = 0
    self.current.removeAll()
    // A mistake of a stage is thrown by the stage; until then nothing is shown.
    self.concealed = try? chain.concealedSlots(of: batch.layout) { output in
      guard chain.sink == nil else { return [] }
      return try self.stages.concealedSlots(of: output, sinks: self.sinks)
    }
    let hidden = self.hidden(in: batch.layout)
    for event in batch.events {
      let key = Key(topic: batch.layout.topic, ordinal: event.ordinal)
      if chain.sink == nil { self.rowLimits[key] = self.rowLimit(of: event, in: batch) }
      let rows = self.snapshot(
        of: event, in: batch, limit: self.rowLimits[key] ?? 1, hidden)
      self.current[event.ordinal] = rows
      guard chain.sink == nil else { continue }
      self.traces[key] = EventTrace(
        topic: batch.layout.topic, replayID: ReplayID(batch.bytes(event.replayID)).hex,
        eventID: String(decoding: batch.bytes(event.eventID), as: UTF8.self),
        schemaID: batch.layout.schemaID, ordinal: event.ordinal, before: rows.shown,
        sinks: self.sinks.map { SinkOutcome(name: $0) })
    }
  }

  func didLeave(_ stage: any Transform, place: Int?, _ chain: StageChain, _ batch: RecordBatch) {
    self.level += 1
    let hidden = self.hidden(in: batch.layout)
    for (index, event) in batch.events.enumerated() {
      let key = Key(topic: batch.layout.topic, ordinal: event.ordinal)
      guard let before = self.current[event.ordinal] else { continue }
      let refusal = batch.refusals.first { $0.event == index }?.reason
      let rows = self.snapshot(
        of: event, in: batch, limit: self.rowLimits[key] ?? 1, hidden)
      self.current[event.ordinal] = rows
      let sink = chain.sink.flatMap { self.place(of: $0) }
      if let place {
        var step = StageStep(
          kind: stage.kind, place: place,
          outcome: refusal.map { .refused($0) }
            ?? (rows.shown.count == before.shown.count && rows.rows == before.rows
              ? .unchanged : .rows(rows.shown)),
          leftOut: before.shown.count - rows.shown.count)
        if step.leftOut == 0 {
          step.hiddenChanges = Self.changes(before.rows, rows.rows, among: hidden.names)
        }
        if let sink {
          self.traces[key]?.sinks[sink].steps.append(step)
        } else {
          self.traces[key]?.steps.append(step)
        }
      } else if stage.leavesOutRows, let sink {
        self.traces[key]?.sinks[sink].routed = rows.shown.count
      }
      guard let refusal else { continue }
      let reason = "stage \(stage.kind)" + (place.map { " (stages[\($0)])" } ?? "") + ": \(refusal)"
      if let sink {
        self.traces[key]?.sinks[sink].refusal = reason
      } else {
        self.traces[key]?.refusal = reason
      }
    }
  }
}
