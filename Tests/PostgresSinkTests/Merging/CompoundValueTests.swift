import Testing

@testable import PostgresSink

/// Parts of records that were not flattened.
@Suite("Compound values") struct CompoundValueTests {
  private func merged(_ parts: String, into base: String) -> String? {
    Array(parts.utf8).withUnsafeBufferPointer { parts in
      Array(base.utf8).withUnsafeBufferPointer { base in
        CompoundValue.merged(parts, into: base).map { String(decoding: $0, as: UTF8.self) }
      }
    }
  }

  @Test(
    "Parts replace parts, whatever their values, and new parts come last",
    arguments: [
      (#"{"City":"Rome"}"#, #"{"Street":"a","City":"b"}"#, #"{"Street":"a","City":"Rome"}"#),
      (#"{"City":null}"#, #"{"City":"b","Zip":"1"}"#, #"{"City":null,"Zip":"1"}"#),
      (#"{"B":1,"C":2}"#, #"{"A":0}"#, #"{"A":0,"B":1,"C":2}"#),
      (#"{}"#, #"{"A":0}"#, #"{"A":0}"#), (#"{"A":0}"#, #"{}"#, #"{"A":0}"#), ("{}", "{}", "{}"),
      // As the server writes it, and values that hold what ends a member elsewhere.
      (
        #"{"B":"x,}\"]"}"#, #"{"A": [1, {"B": "}"}], "B": {"C": ["]", "{"]}, "D": -1.5e300}"#,
        #"{"A":[1, {"B": "}"}],"B":"x,}\"]","D":-1.5e300}"#
      ),
      ("\u{1}" + #"{"A":1}"#, "\u{1}" + #"{"A": 2, "B": 3}"#, "\u{1}" + #"{"A":1,"B":3}"#),
    ])
  func merge(parts: String, base: String, expected: String) {
    #expect(self.merged(parts, into: base) == expected)
  }

  @Test(
    "Values that are not both objects are not merged",
    arguments: [
      (#"{"A":1}"#, #""Acme""#), (#""Acme""#, #"{"A":1}"#), ("", "{}"), ("{}", ""),
      ("\u{1}null", "\u{1}{}"),
    ])
  func others(parts: String, base: String) { #expect(self.merged(parts, into: base) == nil) }

  @Test("The order in which updates are merged does not matter")
  func associative() throws {
    let values = [
      #"{"A":1,"B":2}"#, #"{"C":3,"A":null}"#, #"{"B":4,"D":"x"}"#, #"{}"#, #"{"E":[1],"C":0}"#,
    ]
    for a in values {
      for b in values {
        for c in values {
          let first = try #require(self.merged(b, into: a))
          let last = try #require(self.merged(c, into: b))
          #expect(self.merged(c, into: first) == self.merged(last, into: a))
        }
      }
    }
  }

  private static let columns = [
    TableColumn(name: "billingaddress", type: .jsonb, path: "BillingAddress", isCompound: true),
    TableColumn(name: "tags", type: .jsonb, path: "Tags"),
  ]

  /// Folds values of the first column and gives what the row gets, which had `base`.
  private func folded(
    _ events: [(change: RowBuffer.Change, value: String?)], base: String?
  ) -> String? {
    var buffer = RowBuffer(columnCount: 2)
    for (ordinal, event) in events.enumerated() {
      let id = buffer.bytes.count
      buffer.bytes += "001".utf8
      let value = buffer.bytes.count
      buffer.bytes += (event.value ?? "").utf8
      let first = buffer.cells.count
      if event.value != nil {
        buffer.cells.append(RowBuffer.Cell(column: 0, value..<buffer.bytes.count))
        buffer.cells.append(RowBuffer.Cell(column: 1, value..<buffer.bytes.count))
      } else {
        buffer.cells.append(RowBuffer.Cell(nullOf: 0))
      }
      buffer.rows.append(
        RowBuffer.Row(
          change: event.change, epoch: 1, ordinal: Int64(ordinal), commitTimestamp: nil,
          recordID: id..<id + 3, eventID: 0..<0, metadata: 0..<0, metadataFieldCount: 0,
          cells: first..<buffer.cells.count))
    }
    var fold = RecordFold(columns: Self.columns, removesDeleted: false)
    #expect(fold.fold(buffer, rows: buffer.rows.indices) == buffer.rows.count)
    if fold.isPending(0, column: 0) {
      if let base {
        Array(base.utf8).withUnsafeBufferPointer { fold.resolve(0, column: 0, base: $0, buffer) }
      } else {
        fold.resolve(0, column: 0, base: nil, buffer)
      }
    }
    #expect(fold.deltas[0].pendingDiffCount == 0)
    let cell = fold.cell(0, column: 0)
    #expect(cell.isSet && !cell.isStale)
    // A column of another kind takes the value as it is, an object too.
    if let last = events.last?.value {
      #expect(
        fold.withValue(fold.cell(0, column: 1), buffer) { String(decoding: $0, as: UTF8.self) }
          == last)
    }
    return cell.isNull
      ? nil : fold.withValue(cell, buffer) { String(decoding: $0, as: UTF8.self) }
  }

  @Test("An update's parts join those of the row, the previous image or the previous update")
  func parts() {
    let (street, city) = (#"{"Street":"s"}"#, #"{"City":"c"}"#)
    let both = #"{"Street":"s","City":"c"}"#
    #expect(self.folded([(.update, city)], base: street) == both)
    #expect(self.folded([(.update, city)], base: nil) == city)
    #expect(self.folded([(.update, street), (.update, city)], base: nil) == both)
    #expect(self.folded([(.create, street), (.update, city)], base: #"{"X":1}"#) == both)
    #expect(self.folded([(.update, city), (.create, street)], base: #"{"X":1}"#) == street)
    #expect(self.folded([(.update, city), (.undelete, nil)], base: street) == nil)
  }

  @Test("Null and a scalar replace the whole value, and an object replaces them")
  func switches() {
    let (city, acme) = (#"{"City":"c"}"#, #""Acme""#)
    #expect(self.folded([(.update, nil)], base: city) == nil)
    #expect(self.folded([(.update, city), (.update, nil)], base: city) == nil)
    #expect(self.folded([(.update, nil), (.update, city)], base: #"{"X":1}"#) == city)
    #expect(self.folded([(.update, acme)], base: city) == acme)
    #expect(self.folded([(.update, city)], base: acme) == city)
    #expect(self.folded([(.update, acme), (.update, city)], base: #"{"X":1}"#) == city)
  }
}
