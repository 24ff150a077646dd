import JSON
import Testing

@testable import Pipeline

@Suite struct StagedSinkTests {
  /// Notes the columns of each batch.
  private final class ColumnSink: Sink {
    let name = "columns"
    let isDue = false
    let pendingByteCount = 0
    var columns: [[String]] = []
    func recover(from state: JSONValue?) throws {}
    func write(_ batch: RecordBatch) throws {
      self.columns.append(batch.layout.columns.map(\.name))
    }
    func flush(finish: Bool) throws -> JSONValue { nil }
    func committed() throws -> Bool { false }
  }

  private static func layout(_ names: [String]) -> RecordLayout {
    RecordLayout(
      topic: "/data/T", schemaID: "s", entity: "T", family: .changeEvent,
      slotCount: MetadataSlot.count + names.count, fieldOrder: [],
      columns: names.enumerated().map { index, name in
        Column(
          name: name, path: [name],
          content: .slot(MetadataSlot.count + index, .string), isMetadata: false)
      })
  }

  @Test("The sink sees the columns of its stages, those after it the ones of the pipeline")
  func leavesTheBatchAlone() throws {
    let base = ColumnSink()
    let sink = StagedSink(base, stages: StageChain([Select(["B"])]))
    let layout = Self.layout(["A", "B"])
    let batch = RecordBatch(layout: layout)
    try sink.write(batch)
    try sink.write(batch)
    #expect(base.columns == [["B"], ["B"]])
    #expect(batch.layout === layout)
  }

  @Test("A mistake in its stages ends the write, and leaves the batch as it was")
  func throwsWhatStagesThrow() throws {
    let layout = Self.layout(["A", "B"])
    let batch = RecordBatch(layout: layout)
    let sink = StagedSink(ColumnSink(), stages: StageChain([Select(["C"], missing: .fail)]))
    #expect(throws: TransformError.self) { try sink.write(batch) }
    #expect(batch.layout === layout)
  }
}
