import JSON
import Testing

@testable import Pipeline

@Suite("Stages of a sink") struct StagedTests {
  /// Notes the columns of each batch.
  private final class ColumnSink: CheckpointedSink {
    let name = "columns"
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

  @Test("A sink sees the columns of its own stages, and later sinks those of the pipeline")
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

  @Test("A mistake in a sink's stages ends the write and leaves the batch unchanged")
  func throwsWhatStagesThrow() throws {
    let layout = Self.layout(["A", "B"])
    let batch = RecordBatch(layout: layout)
    let sink = StagedSink(ColumnSink(), stages: StageChain([Select(["C"], missing: .fail)]))
    #expect(throws: TransformError.self) { try sink.write(batch) }
    #expect(batch.layout === layout)
  }

  /// Writes over the first field of every row.
  private struct Overwrite: Transform {
    var changesRows: Bool { true }
    func layout(for input: RecordLayout) -> RecordLayout { input }
    func apply(to batch: RecordBatch) {
      for row in 0..<batch.rowCount {
        batch.row(row).cells[MetadataSlot.count] = 7
        batch.row(row).presence[MetadataSlot.count] = RecordBatch.Presence.value
      }
    }
  }

  private final class CellSink: CheckpointedSink {
    let name = "cells"
    var cells: [UInt64] = []
    var events: [String] = []
    func recover(from state: JSONValue?) throws {}
    func write(_ batch: RecordBatch) throws {
      for row in 0..<batch.rowCount {
        self.cells.append(batch.row(row).cells[MetadataSlot.count])
      }
      for event in batch.events {
        self.events.append(
          "\(batch.epoch)/\(event.ordinal)/"
            + String(decoding: batch.bytes(event.eventID), as: UTF8.self))
      }
    }
    func flush(finish: Bool) throws -> JSONValue { nil }
    func committed() throws -> Bool { false }
  }

  @Test(
    "Changes to rows by one sink's stage are not visible to other sinks", arguments: [1, 3, 40])
  func keepsChangesToItself(rowCount: Int) throws {
    let (first, second) = (CellSink(), CellSink())
    let staged = StagedSink(first, stages: StageChain([Overwrite()]))
    let batch = RecordBatch(layout: Self.layout(["A"]))
    batch.epoch = 3
    for _ in 0..<2 {
      batch.removeAll(layout: batch.layout)
      for number in 0..<rowCount {
        let row = batch.addRow()
        batch.row(row).cells[MetadataSlot.count] = UInt64(100 + number)
        let eventID = Array("e\(number)".utf8).withUnsafeBufferPointer { batch.append($0) }
        batch.events.append(
          RecordBatch.Event(
            firstRow: row, rowCount: 1, replayID: eventID, eventID: eventID, commitTimestamp: nil,
            kind: .change, ordinal: Int64(number)))
      }
      try staged.write(batch)
      try second.write(batch)
    }
    let numbers = Array(0..<rowCount) + Array(0..<rowCount)
    #expect(first.cells == numbers.map { _ in 7 })
    #expect(second.cells == numbers.map { UInt64(100 + $0) })
    #expect(first.events == numbers.map { "3/\($0)/e\($0)" })
    #expect(second.events == first.events)
  }
}
