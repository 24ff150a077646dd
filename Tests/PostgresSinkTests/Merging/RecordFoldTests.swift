import Testing

@testable import PostgresSink

@Suite("Record fold") struct RecordFoldTests {
  private static let columns = SampleTables.columns

  private static func buffer(_ events: [SampleEvent]) -> RowBuffer {
    var buffer = RowBuffer(columnCount: Self.columns.count)
    for event in events { buffer.append(event, columns: Self.columns) }
    return buffer
  }

  private static func event(
    _ change: RowBuffer.Change, _ ordinal: Int64, _ values: [String: SampleEvent.Value] = [:],
    id: String = "001"
  ) -> SampleEvent {
    SampleEvent(change: change, recordID: id, ordinal: ordinal, time: ordinal, values: values)
  }

  @Test("Each record has one delta, in order of appearance, with the positions of its events")
  func manyRecords() {
    let events = (0..<5000).map { Self.event(.update, Int64($0), id: "00x\($0 % 1700)") }
    let buffer = Self.buffer(events)
    var fold = RecordFold(columns: Self.columns, removesDeleted: false)
    for _ in 0..<2 {
      fold.removeAll()
      // Room is made between two calls, too.
      #expect(fold.fold(buffer, rows: 0..<10) == 10)
      #expect(fold.fold(buffer, rows: 10..<5000) == 5000)
      #expect(fold.deltas.count == 1700)
      for (index, delta) in fold.deltas.enumerated() {
        #expect(fold.recordID(index, buffer) == "00x\(index)")
        #expect(delta.firstOrdinal == Int64(index))
        #expect(delta.ordinal == Int64(index) + (index < 1600 ? 3400 : 1700))
      }
    }
  }

  @Test("Folding records of a wide table takes bounded memory")
  func wideTable() {
    let buffer = Self.buffer((0..<2500).map { Self.event(.update, Int64($0), id: "\($0)") })
    let columns = (0..<1500).map { TableColumn(name: "c\($0)", type: .text, path: "C\($0)") }
    var fold = RecordFold(columns: columns, removesDeleted: false)
    var next = 0
    var ends: [Int] = []
    while next < buffer.rows.count {
      fold.removeAll()
      next = fold.fold(buffer, rows: next..<buffer.rows.count)
      ends.append(next)
    }
    // 12 bytes a column: 16 MiB are 933 records.
    #expect(ends == [933, 1866, 2500])
  }

  @Test("An update sets the fields that it has, null or not, and leaves the rest")
  func patch() {
    let buffer = Self.buffer([
      Self.event(.update, 1, ["name": .text("a"), "order": .integer(1)]),
      Self.event(.update, 2, ["name": .null, "description": .text("b")]),
    ])
    var fold = RecordFold(columns: Self.columns, removesDeleted: false)
    _ = fold.fold(buffer, rows: 0..<2)
    let cells = (0..<Self.columns.count).map { fold.cell(0, column: $0) }
    #expect(cells.map(\.isSet) == [true, true, true, false, false])
    #expect(cells.map(\.isNull) == [true, false, false, true, true])
    #expect(fold.withValue(cells[2], buffer) { Array($0) } == Array("b".utf8))
    #expect(!fold.deltas[0].isReplacement)
  }

  @Test("A full image replaces everything before it")
  func replacement() {
    let buffer = Self.buffer([
      Self.event(.update, 1, ["name": .text("a"), "description": .diff("--- \n")]),
      Self.event(.gapUpdate, 2), Self.event(.delete, 3),
      Self.event(.create, 4, ["order": .integer(1)]),
    ])
    var fold = RecordFold(columns: Self.columns, removesDeleted: false)
    _ = fold.fold(buffer, rows: 0..<4)
    let delta = fold.deltas[0]
    #expect(delta.isReplacement && !delta.isPartial && delta.pendingDiffCount == 0)
    #expect(delta.deleted == .cleared && delta.stale == .cleared)
    let cells = (0..<Self.columns.count).map { fold.cell(0, column: $0) }
    #expect(cells.map(\.isSet) == [true, true, true, true, true])
    #expect(cells.map(\.isNull) == [true, false, true, true, true])
    #expect(!cells.contains { $0.isStale })
  }

  @Test("A full image keeps what only reads bring, unless the row was removed before")
  func keepsOnlyRead() {
    var columns = [
      TableColumn(name: "a", type: .text, path: "A"),
      TableColumn(name: "b", type: .text, path: "B"),
    ]
    columns[1].isOnlyRead = true
    for (removes, isSet) in [(false, [true, false]), (true, [true, true])] {
      var buffer = RowBuffer(columnCount: columns.count)
      for event in [Self.event(.delete, 1), Self.event(.undelete, 2, ["a": .text("x")])] {
        buffer.append(event, columns: columns)
      }
      var fold = RecordFold(columns: columns, removesDeleted: removes)
      _ = fold.fold(buffer, rows: 0..<2)
      #expect(fold.deltas[0].isReplacement)
      #expect((0..<2).map { fold.cell(0, column: $0).isSet } == isSet)
    }
  }

  @Test("A creation without the fields that every record has is not a full image")
  func lackingSystemFields() {
    let columns = [
      TableColumn(name: "unitprice", type: .text, path: "UnitPrice"),
      TableColumn(name: "createddate", type: .text, path: "CreatedDate"),
      TableColumn(name: "createdbyid", type: .text, path: "CreatedById"),
    ]
    let whole: [String: SampleEvent.Value] = [
      "createddate": .text("2026-02-17"), "createdbyid": .text("005"),
    ]
    for (values, isPartial) in [
      (whole, false), (["createddate": .text("2026-02-17")], true), ([:], true),
      (whole.merging(["createdbyid": .null]) { $1 }, true),
    ] {
      var buffer = RowBuffer(columnCount: columns.count)
      buffer.append(Self.event(.create, 1, values), columns: columns)
      var fold = RecordFold(columns: columns, removesDeleted: false)
      _ = fold.fold(buffer, rows: 0..<1)
      #expect(fold.deltas[0].isPartial == isPartial, "\(values)")
      #expect(fold.deltas[0].isReplacement)
    }
  }

  @Test("Diffs wait for the table's value and are applied in order")
  func pendingDiffs() {
    func diff(_ line: Int, _ old: String, _ new: String, result: String) -> SampleEvent.Value {
      .diff("--- \n+++ \(TextDiffTests.hash(result))\n@@ -\(line) +\(line) @@\n-\(old)\n+\(new)")
    }
    let buffer = Self.buffer([
      Self.event(.update, 1, ["description": diff(1, "a", "A", result: "A\nb")]),
      Self.event(.update, 2, ["description": diff(2, "b", "B", result: "A\nB")]),
    ])
    for (base, isRight) in [("a\nb", true), ("a\nc", false)] {
      var fold = RecordFold(columns: Self.columns, removesDeleted: false)
      _ = fold.fold(buffer, rows: 0..<2)
      #expect(fold.isPending(0, column: 2) && fold.deltas[0].pendingDiffCount == 1)
      Array(base.utf8).withUnsafeBufferPointer { fold.resolve(0, column: 2, base: $0, buffer) }
      let cell = fold.cell(0, column: 2)
      #expect(fold.deltas[0].pendingDiffCount == 0)
      #expect(cell.isSet == isRight && cell.isStale == !isRight)
      guard isRight else { continue }
      #expect(fold.withValue(cell, buffer) { Array($0) } == Array("A\nB".utf8))
    }
  }

  @Test("Where deleted rows are removed, a fold stops if only the tombstones can decide")
  func stopsBeforeRevival() {
    let buffer = Self.buffer([
      Self.event(.update, 1, ["name": .text("a")]), Self.event(.gapUndelete, 2),
      Self.event(.delete, 3), Self.event(.update, 4, ["name": .text("b")]),
      Self.event(.gapCreate, 5),
    ])
    var fold = RecordFold(columns: Self.columns, removesDeleted: true)
    #expect(fold.fold(buffer, rows: 0..<5) == 1)
    fold.removeAll()
    #expect(fold.fold(buffer, rows: 1..<5) == 5)
    let delta = fold.deltas[0]
    #expect(delta.isReplacement && delta.isPartial && delta.isRevived && !delta.isRemoved)
    #expect(delta.stale == .set && fold.cell(0, column: 0).isNull)
  }
}
