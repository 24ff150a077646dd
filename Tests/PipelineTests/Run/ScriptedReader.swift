@testable import Pipeline

/// Reads records of one object from a list, in batches, by jobs that may be lost.
final class ScriptedReader: RecordReader {
  let objects: [ReadObject]
  private let records: [String]
  private let layout: RecordLayout
  private var queue: [ReadSignal] = []
  /// Passes as they were begun or resumed.
  private(set) var begun: [ReadPass] = []
  /// Called at the beginning of each.
  var onBegin: ((ReadPass) -> Void)?
  /// The first job is lost after so many records, and another one begins.
  var losesJobAfter: Int?
  /// Records that cannot become rows if they are requested by ID.
  var unreadable: Set<String> = []
  /// Instead of reading.
  var failure: SourceFailure?

  private static let batchSize = 2

  init(_ object: ReadObject, records: [String]) {
    self.objects = [object]
    self.records = records
    self.layout = object.layout
  }

  func next() -> ReadSignal? { self.queue.isEmpty ? nil : self.queue.removeFirst() }

  func begin(object: Int, _ pass: ReadPass) {
    self.begun.append(pass)
    self.onBegin?(pass)
    if let failure {
      self.queue.append(.failed(object: object, failure))
      return
    }
    var pass = pass
    if let lost = self.losesJobAfter, pass.job == nil {
      self.read(object, &pass, job: "lost", upTo: lost)
      pass.forgetJob()
    }
    self.read(object, &pass, job: pass.job ?? "job", upTo: self.records.count)
    pass.state = .complete
    self.queue.append(.progress(object: object, pass))
  }

  private func read(_ object: Int, _ pass: inout ReadPass, job: String, upTo end: Int) {
    if pass.job == nil {
      pass.job = job
      pass.state = .reading
      self.queue.append(.progress(object: object, pass))
    }
    while pass.row < end {
      let some = self.records[pass.row..<min(pass.row + Self.batchSize, end)]
      pass.row += some.count
      pass.rowCount += some.count
      self.queue.append(.records(object: object, self.batch(Array(some)), pass))
    }
  }

  func read(object: Int, ids: [String], store: Int) {
    if let failure {
      self.queue.append(.notAsked(object: object, store: store, failure, calls: 1))
      return
    }
    for id in ids where self.unreadable.contains(id) {
      let record = UnreadableRecord(recordID: id, stamp: nil, reason: "no")
      self.queue.append(.unreadable(object: object, store: store, record))
    }
    let ids = ids.filter { !self.unreadable.contains($0) }
    let found = ids.filter { self.records.contains($0) }
    self.queue.append(
      .found(
        object: object, store: store, self.batch(found),
        missing: ids.filter { !self.records.contains($0) }, calls: 3))
  }

  private func batch(_ records: [String]) -> RecordBatch {
    let batch = RecordBatch(layout: self.layout)
    for id in records {
      let row = batch.addRow()
      let range = Array(id.utf8).withUnsafeBufferPointer { batch.append($0) }
      batch.row(row).set(MetadataSlot.recordID, to: range)
      batch.events.append(
        RecordBatch.Event(
          firstRow: row, rowCount: 1, replayID: RecordBatch.Range(offset: 0, count: 0),
          eventID: range, commitTimestamp: nil, kind: .snapshot))
    }
    return batch
  }
}
