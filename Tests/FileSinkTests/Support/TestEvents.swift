import JSON
import Pipeline

@testable import FileSink

/// An event of the tests: what it is and where it belongs.
struct TestEvent: Equatable {
  var number: Int
  var topic = "/data/OpportunityChangeEvent"
  var entity = "Opportunity"
  /// nil for a platform event.
  var commitTimestamp: Int64? = 1_771_300_995_000  // 2026-02-17T04:03:15Z
  var rowCount = 1
  var text = ""
  var isUndecodable = false
  /// Number of the replay ID, when other events share it.
  var replay: Int?
  /// Its rows have the column `_record_id`.
  var recordID: String?
}

/// Layouts and batches for `TestEvent`s.
final class TestBatches {
  private var layouts: [String: RecordLayout] = [:]

  static let textSlot = MetadataSlot.count

  func layout(topic: String, entity: String, hasRecordID: Bool = false) -> RecordLayout {
    let key = topic + entity + (hasRecordID ? " with IDs" : "")
    if let layout = self.layouts[key] { return layout }
    let recordID = Column(
      name: "_record_id", path: ["_record_id"], content: .slot(MetadataSlot.recordID, .string),
      isMetadata: true)
    let layout = RecordLayout(
      topic: topic, schemaID: "schema-\(entity)", entity: entity,
      family: topic.hasPrefix("/event/") ? .platformEvent : .changeEvent,
      slotCount: MetadataSlot.count + 1, fieldOrder: [Self.textSlot],
      columns: [
        Column(
          name: "_event_id", path: ["_event_id"], content: .slot(MetadataSlot.eventID, .string),
          isMetadata: true)
      ] + (hasRecordID ? [recordID] : []) + [
        Column(name: "text", path: ["text"], content: .slot(Self.textSlot, .string))
      ])
    self.layouts[key] = layout
    return layout
  }

  /// Batches in stream order: a new one where topic or entity changes.
  func batches(_ events: ArraySlice<TestEvent>, epoch: Int = 1) -> [RecordBatch] {
    var batches: [RecordBatch] = []
    for event in events {
      let layout = self.layout(
        topic: event.topic, entity: event.entity, hasRecordID: event.recordID != nil)
      if batches.last?.layout !== layout { batches.append(RecordBatch(layout: layout)) }
      guard let batch = batches.last else { continue }
      batch.epoch = epoch
      self.append(event, to: batch)
    }
    return batches
  }

  private func append(_ event: TestEvent, to batch: RecordBatch) {
    let eventID = self.bytes("e\(event.number)", batch)
    let text = self.bytes(event.text, batch)
    let replayID = self.bytes("r\(event.replay ?? event.number)", batch)
    let firstRow = batch.rowCount
    for _ in 0..<event.rowCount {
      let row = batch.row(batch.addRow())
      row.set(MetadataSlot.eventID, to: eventID)
      row.set(Self.textSlot, to: text)
      if let recordID = event.recordID {
        row.set(MetadataSlot.recordID, to: self.bytes(recordID, batch))
      }
    }
    batch.events.append(
      RecordBatch.Event(
        firstRow: firstRow, rowCount: event.rowCount, replayID: replayID, eventID: eventID,
        commitTimestamp: event.commitTimestamp,
        kind: event.commitTimestamp == nil ? .event : .change, ordinal: Int64(event.number)))
  }

  /// Adds a record that was read.
  func append(read id: String, to batch: RecordBatch) {
    let eventID = self.bytes(id, batch)
    let number = batch.addRow()
    batch.row(number).set(MetadataSlot.eventID, to: eventID)
    batch.row(number).presence[Self.textSlot] = RecordBatch.Presence.null
    batch.events.append(
      RecordBatch.Event(
        firstRow: number, rowCount: 1, replayID: .init(offset: 0, count: 0), eventID: eventID,
        commitTimestamp: 1_771_300_000_000, kind: .snapshot))
  }

  private func bytes(_ text: String, _ batch: RecordBatch) -> RecordBatch.Range {
    var text = text
    return text.withUTF8 { batch.append($0) }
  }
}

/// A clock that tests move.
final class TestClock: @unchecked Sendable {
  // Not guarded: each test uses its own from one thread.
  var elapsed = Duration.zero
  var utcMilliseconds: Int64 = 1_771_300_995_000

  var sinkClock: SinkClock {
    SinkClock(monotonic: { self.elapsed }, utcMilliseconds: { self.utcMilliseconds })
  }
}
