import JSON
import Pipeline

/// Takes the place of a sink and shows what the sink would write.
final class PreviewSink: CheckpointedSink {
  let name: String
  private let preview: any LinePreview
  private let traces: EventTraces

  init(name: String, _ preview: any LinePreview, _ traces: EventTraces) {
    self.name = name
    self.preview = preview
    self.traces = traces
  }

  func write(_ batch: RecordBatch) throws {
    try self.traces.preview(batch, in: self.name, self.preview)
  }

  func recover(from state: JSONValue?) {}
  func flush(finish: Bool) -> JSONValue { nil }
  func committed() -> Bool { false }
}

/// Shows the events that would become dead letters.
final class PreviewLetters: DeadLetterStore {
  private(set) var count = 0
  private let traces: EventTraces

  init(_ traces: EventTraces) { self.traces = traces }

  func append(_ letter: DeadLetter) {
    self.count += 1
    self.traces.refuse(letter)
  }

  func recover(from state: JSONValue?) {}
  func flush(finish: Bool) -> JSONValue { nil }
  func committed() -> Bool { false }
  var isDue: Bool { false }
  var pendingByteCount: Int { 0 }
}
