import Pipeline
import Testing

@Suite("Chains of stages")
struct StageChainTests {
  /// Counts layouts and marks rows.
  private final class Probe: Transform {
    var layoutCount = 0
    var seenColumns: [[String]] = []

    func layout(for input: RecordLayout) throws -> RecordLayout {
      self.layoutCount += 1
      return input.with(columns: input.columns + [Column("probe\(self.layoutCount)", 9)])
    }

    func apply(to batch: RecordBatch) throws {
      self.seenColumns.append(batch.layout.names)
      for row in 0..<batch.rowCount { batch.row(row).cells[9] += 1 }
    }
  }

  private func layout() -> RecordLayout {
    .of([Column(record: "Name", 0, children: ["FirstName"]), Column("Other", 2)], slotCount: 10)
  }

  @Test("A layout passes each stage once and in order, and batches get the last layout")
  func onceEach() throws {
    let probe = Probe()
    let chain = StageChain([Flatten(naming: .sobject), probe, Rename(["FirstName": "first"])])
    let input = self.layout()
    let output = try chain.layout(for: input)
    #expect(output.names == ["first", "Other", "probe1"])

    let batch = RecordBatch(layout: input)
    for round in 1...3 {
      batch.removeAll(layout: input)
      let row = batch.addRow()
      batch.row(row).cells[9] = 0
      try chain.apply(to: batch)
      #expect(batch.layout === output)
      #expect(batch.row(row).cells[9] == 1)
      #expect(probe.seenColumns.count == round)
    }
    #expect(probe.layoutCount == 1)
    #expect(probe.seenColumns[0] == ["FirstName", "Other", "probe1"])

    _ = try chain.layout(for: self.layout())
    #expect(probe.layoutCount == 2)
  }

  @Test("Without stages layouts do not change")
  func noStages() throws {
    let chain = StageChain([])
    let input = self.layout()
    #expect(try chain.layout(for: input) === input)
    let batch = RecordBatch(layout: input)
    try chain.apply(to: batch)
    #expect(batch.layout === input)
  }

  @Test("Two fields with the same name are an error even without stages")
  func collisionWithoutStages() {
    #expect(throws: TransformError.self) {
      try StageChain([]).layout(for: .of([Column("A", 0), Column("A", 1)]))
    }
  }

  @Test("Names found in no layout are reported with their stage")
  func unmatchedNames() throws {
    let chain = StageChain([Flatten(), Drop(["Nmae"]), Select(["Other"])])
    _ = try chain.layout(for: self.layout())
    #expect(chain.namedColumns.map(\.stage) == [1, 2])
    #expect(chain.namedColumns.map(\.unmatched) == [["Nmae"], []])
  }
}

@Test("A stage whose plans were evicted is asked for its layout again")
func evictedPlans() throws {
  // Each layout takes almost a quarter of what caches hold, and the stage adds a slot to each.
  let columns = (0..<(LayoutCache<Int>.maxSlotCount / 4 - MetadataSlot.count)).map {
    ("F\($0)", ColumnType.int64)
  }
  let chain = try StageChain(json: [#"{"type":"set","columns":{"X":"F0 + 1"}}"#])
  let fixtures = (0..<4).map { _ in StageRows(columns) }
  for fixture in fixtures + fixtures {
    fixture.batch.removeAll(layout: fixture.layout)
    fixture.add(StageRows.Row(cells: ["F0": .int(1)]))
    try chain.apply(to: fixture.batch)
    #expect(fixture.value("X", ofRow: 0) == .int(2))
  }
}
