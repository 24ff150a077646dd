import FileSink
import JSON
import Pipeline
import TestSupport
import Testing

@Suite("NDJSON lines")
struct NDJSONEncoderTests {
  @Test("The line of an update equals the documented one byte for byte")
  func documentedLine() {
    let metadata = Column.changeMetadata(
      topic: "/data/OpportunityChangeEvent", schemaID: "schema-1")
    let layout = RecordLayout(
      topic: "/data/OpportunityChangeEvent", schemaID: "schema-1", entity: "Opportunity",
      family: .changeEvent, slotCount: 20, fieldOrder: [16, 17, 18, 19],
      columns: metadata + [
        Column("Name", 16, .string), Column("StageName", 17, .string),
        Column("Amount", 18, .double),
        Column("LastModifiedDate", 19, .timestamp(.milliseconds, isLocal: false)),
      ])
    let batch = RecordBatch(layout: layout)
    batch.addRow([
      MetadataSlot.replayID: .text("00000000005a94f00000"), MetadataSlot.eventID: .text("e-1"),
      MetadataSlot.kind: .integer(0), MetadataSlot.entity: .text("Opportunity"),
      MetadataSlot.changeType: .text("UPDATE"), MetadataSlot.recordID: .text("006AAA"),
      MetadataSlot.commitTimestamp: .integer(1_771_300_995_000),
      MetadataSlot.commitNumber: .text("1709303151782928388"),
      MetadataSlot.commitUser: .text("005"), MetadataSlot.transactionKey: .text("t-1"),
      MetadataSlot.sequenceNumber: .integer(1), MetadataSlot.changeOrigin: .text(""),
      MetadataSlot.changedFields: .slots([17, 18, 19]), MetadataSlot.nulledFields: .slots([18]),
      17: .text("Closed Won"), 18: .null, 19: .integer(1_771_300_995_000),
    ])
    #expect(
      batch.lines() == """
        {"_topic":"/data/OpportunityChangeEvent","_replay_id":"00000000005a94f00000",\
        "_event_id":"e-1","_schema_id":"schema-1","_kind":"change","_entity":"Opportunity",\
        "_change_type":"UPDATE","_record_id":"006AAA",\
        "_commit_timestamp":"2026-02-17T04:03:15.000Z","_commit_number":"1709303151782928388",\
        "_commit_user":"005","_transaction_key":"t-1","_sequence_number":1,"_change_origin":"",\
        "_changed_fields":["StageName","Amount","LastModifiedDate"],"_nulled_fields":["Amount"],\
        "_diff_fields":[],"StageName":"Closed Won","Amount":null,\
        "LastModifiedDate":"2026-02-17T04:03:15.000Z"}

        """)
  }

  @Test(
    "Each type has its JSON form",
    arguments: [
      (.boolean, .integer(1), "true"), (.boolean, .integer(0), "false"),
      (.int32, .integer(-5), "-5"), (.int64, .integer(.max), "9223372036854775807"),
      (.int64, .integer(.min), "-9223372036854775808"),
      (.float, .float(0.1), "0.1"), (.float, .float(3), "3.0"),
      (.double, .double(100), "100.0"), (.double, .double(-0.0), "-0.0"),
      (.double, .double(1e300), "1e+300"),
      (.string, .text(""), #""""#), (.string, .text("a\"b\u{0}\n😀"), #""a\"b\u0000\n😀""#),
      (.enumeration(["A", "q\"", ""]), .integer(1), #""q\"""#),
      (.enumeration(["A", "q\"", ""]), .integer(2), #""""#),
      (.bytes, .bytes([]), #""""#), (.bytes, .bytes([0xFB, 0xFF]), #""+/8=""#),
      (.decimal(precision: 5, scale: 2), .bytes([0x04, 0xD2]), #""12.34""#),
      (.decimal(precision: 5, scale: 0), .bytes([0xFF]), #""-1""#),
      (
        .uuid, .text("b2f1cf6a-7c43-4c5e-bd0a-b9a5d0e6f7c1"),
        #""b2f1cf6a-7c43-4c5e-bd0a-b9a5d0e6f7c1""#
      ),
      (.date(.days), .integer(-1), #""1969-12-31""#),
      (.date(.milliseconds), .integer(1_653_955_200_000), #""2022-05-31""#),
      (.time(.milliseconds), .integer(1), #""00:00:00.001""#),
      (.time(.microseconds), .integer(1), #""00:00:00.000001""#),
      (.time(.nanoseconds), .integer(1), #""00:00:00.000000001""#),
      (.timestamp(.milliseconds, isLocal: false), .integer(0), #""1970-01-01T00:00:00.000Z""#),
      (.timestamp(.microseconds, isLocal: false), .integer(0), #""1970-01-01T00:00:00.000000Z""#),
      (
        .timestamp(.nanoseconds, isLocal: false), .integer(0),
        #""1970-01-01T00:00:00.000000000Z""#
      ),
      (.timestamp(.milliseconds, isLocal: true), .integer(0), #""1970-01-01T00:00:00.000""#),
      (.timestamp(.microseconds, isLocal: true), .integer(0), #""1970-01-01T00:00:00.000000""#),
      (.timestamp(.nanoseconds, isLocal: true), .integer(0), #""1970-01-01T00:00:00.000000000""#),
      (
        .timestamp(.milliseconds, isLocal: false), .integer(.max),
        #""+292278994-08-17T07:12:55.807Z""#
      ),
      (
        .duration, .bytes([1, 0, 0, 0, 2, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF]),
        #"{"months":1,"days":2,"milliseconds":4294967295}"#
      ),
      (.stringList, .text(#"["a","b"]"#), #"["a","b"]"#),
      (.json, .text(#"{"x":[1,null]}"#), #"{"x":[1,null]}"#),
      (.fieldSet, .slots([1]), #"["Other"]"#),
    ] as [(ColumnType, TestCell, String)])
  func types(type: ColumnType, cell: TestCell, expected: String) {
    let layout = RecordLayout.plain(
      [Column("X", 0, type), Column("Other", 1, .int32)], slotCount: 2)
    let batch = RecordBatch(layout: layout)
    batch.addRow([0: cell])
    batch.addRow([0: .null])
    batch.addRow([:])
    batch.addRow([0: cell, 1: .integer(7)])
    #expect(
      batch.lines() == """
        {"X":\(expected)}
        {"X":null}
        {}
        {"X":\(expected),"Other":7}

        """)
  }

  @Test("Long columns become strings on request; other integers do not")
  func int64AsStrings() {
    let layout = RecordLayout.plain(
      [
        Column("L", 0, .int64), Column("I", 1, .int32),
        Column("T", 2, .timestamp(.milliseconds, isLocal: false)),
      ], slotCount: 3)
    let batch = RecordBatch(layout: layout)
    batch.addRow([0: .integer(-9), 1: .integer(2), 2: .integer(0)])
    #expect(
      batch.lines(NDJSONFormat(int64AsStrings: true))
        == "{\"L\":\"-9\",\"I\":2,\"T\":\"1970-01-01T00:00:00.000Z\"}\n")
    #expect(batch.lines() == "{\"L\":-9,\"I\":2,\"T\":\"1970-01-01T00:00:00.000Z\"}\n")
  }

  @Test("NaN and infinities are null, and a member at the end lists them")
  func nonfinite() {
    let layout = RecordLayout.plain(
      [
        Column("A", 0, .double), Column("F", 1, .float),
        Column("Loc", 2, children: [("Latitude", 3, .double)]), Column("Z", 4, .int32),
      ], slotCount: 5)
    let batch = RecordBatch(layout: layout)
    batch.addRow([
      0: .double(.nan), 1: .float(-.infinity), 2: .record, 3: .double(.infinity), 4: .integer(1),
    ])
    batch.addRow([0: .double(1)])
    #expect(
      batch.lines() == """
        {"A":null,"F":null,"Loc":{"Latitude":null},"Z":1,\
        "_nonfinite":{"A":"NaN","F":"-Infinity","Loc.Latitude":"Infinity"}}
        {"A":1.0}

        """)
  }

  @Test("Records that are not flattened are objects of their present children")
  func records() {
    let layout = RecordLayout.plain(
      [
        Column("Before", 0, .int32),
        Column("Address", 1, children: [("Street", 4, .string), ("City", 5, .string)]),
        Column(
          "Name", 2, scalar: .init(slot: 6, type: .string), children: [("FirstName", 7, .string)]),
        Column("After", 3, .int32),
      ], slotCount: 8)
    let batch = RecordBatch(layout: layout)
    batch.addRow([0: .integer(1), 1: .record, 4: .text("s"), 5: .null, 3: .integer(2)])
    batch.addRow([1: .null, 4: .null, 5: .null])
    batch.addRow([1: .record])
    batch.addRow([2: .record, 6: .text("Acme"), 3: .integer(3)])
    batch.addRow([2: .record, 7: .text("Ada")])
    #expect(
      batch.lines() == """
        {"Before":1,"Address":{"Street":"s","City":null},"After":2}
        {"Address":null}
        {"Address":{}}
        {"Name":"Acme","After":3}
        {"Name":{"FirstName":"Ada"}}

        """)
  }

  @Test("NaN and infinities inside lists, maps and records are listed with their path")
  func nonfiniteInside() {
    let layout = RecordLayout.plain(
      [
        Column("Scores", 0, .json), Column("Rates", 1, .json),
        Column("Deep", 2, children: [("List", 3, .json)]), Column("One", 4, .json),
      ], slotCount: 5)
    let batch = RecordBatch(layout: layout)
    var lost: [RecordBatch.NonfiniteNumber] = []
    func text(_ slot: Int, _ text: String, _ numbers: [Float]) {
      var rest = text[...]
      var offset = 0
      for number in numbers {
        // Each stands for the next null of the text.
        guard let found = rest.firstRange(of: "null") else { return }
        offset += rest[..<found.lowerBound].utf8.count
        lost.append(
          RecordBatch.NonfiniteNumber(
            text: batch.row(0).cells[slot], offset: offset, value: number))
        offset += 4
        rest = rest[found.upperBound...]
      }
    }
    let scores = "[1.0,null,[\"a,]\",null]]"
    let rates = #"{"E\"R":{"x":null},"y":1.0}"#
    let list = #"[{"a":[],"b":null}]"#
    batch.addRow([
      0: .text(scores), 1: .text(rates), 2: .record, 3: .text(list), 4: .text("null"),
    ])
    text(0, scores, [.nan, .infinity])
    text(1, rates, [-.infinity])
    text(3, list, [.nan])
    text(4, "null", [.nan])
    // The texts of a dictionary came in any order.
    for number in lost.sorted(by: { ($0.text, $0.offset) < ($1.text, $1.offset) }) {
      batch.note(number)
    }
    // A copy of the row, as of an event of several records, and a row without any.
    _ = batch.addCopies(ofRow: 0, count: 1)
    batch.addRow([0: .text("[null]")])
    let line = """
      {"Scores":\(scores),"Rates":\(rates),"Deep":{"List":\(list)},"One":null,\
      "_nonfinite":{"Scores[1]":"NaN","Scores[2][1]":"Infinity","Rates.E\\"R.x":"-Infinity",\
      "Deep.List[0].b":"NaN","One":"NaN"}}

      """
    #expect(batch.lines() == line + line + "{\"Scores\":[null]}\n")
  }

  @Test("Field lists name each key of the line once, and name a record for any of its parts")
  func fieldNames() {
    // The decoder has put the children's slots between those of the top level.
    let columns = [
      Column("_changed", 0, .fieldSet), Column("A", 1, .int32),
      Column("Addr", 2, children: [("Street", 3, .string), ("City", 4, .string)]),
      Column("renamed \"b\"", 5, .int32),
    ]
    let layout = RecordLayout.plain(
      columns, slotCount: 80, fieldOrder: [1, 2, 5, 79, 3, 4], family: .changeEvent)
    let batch = RecordBatch(layout: layout)
    batch.addRow([0: .slots([1, 3, 4, 5, 79])])
    batch.addRow([0: .slots([4])])
    batch.addRow([0: .slots([])])
    batch.addRow([:])
    #expect(
      batch.lines() == """
        {"_changed":["A","renamed \\"b\\"","Addr"]}
        {"_changed":["Addr"]}
        {"_changed":[]}
        {"_changed":[]}

        """)
  }

  @Test(
    "Field lists are complete for every length of the bitset",
    arguments: [1, 8, 9, 63, 64, 65, 130])
  func fieldNamesOfEveryLength(count: Int) {
    let columns = (0..<count).map { Column("c\($0)", $0, .int32) }
    let layout = RecordLayout.plain(
      [Column("_changed", count, .fieldSet)] + columns, slotCount: count + 1,
      family: .changeEvent)
    let batch = RecordBatch(layout: layout)
    batch.addRow([count: .slots(Array(0..<count))])
    for slot in 0..<count { batch.addRow([count: .slots([slot])]) }
    let all = (0..<count).map { "\"c\($0)\"" }
    let lines = [all.joined(separator: ",")] + all
    #expect(batch.lines() == lines.map { "{\"_changed\":[\($0)]}\n" }.joined())
  }

  @Test("Columns that are out of slot order or far apart keep their order")
  func columnOrder() {
    let slots = [5, 3, 200, 4, 0, 199, 64, 65, 63]
    let layout = RecordLayout.plain(
      [Column(name: "k", path: ["k"], content: .constant("v\n"))]
        + slots.map { Column("c\($0)", $0, .int32) }
        + [
          Column(name: "m", path: ["m"], content: .constant("")),
          Column(name: "n", path: ["n"], content: .constant("2")),
        ], slotCount: 201)
    let batch = RecordBatch(layout: layout)
    // Slots of no column are filled, too, and must not show.
    batch.addRow(Dictionary(uniqueKeysWithValues: (0..<201).map { ($0, .integer(Int64($0))) }))
    batch.addRow([:])
    let cells = slots.map { "\"c\($0)\":\($0)," }.joined()
    #expect(
      batch.lines() == """
        {"k":"v\\n",\(cells)"m":"","n":"2"}
        {"k":"v\\n","m":"","n":"2"}

        """)
  }

  @Test("Every pattern of presence across word boundaries is written")
  func presencePatterns() {
    let slots = [6, 7, 8, 9, 15, 16, 17]
    let layout = RecordLayout.plain(
      slots.map { Column("c\($0)", $0, .int32) }, slotCount: 18)
    for pattern in 0..<2187 {  // 3 states of 7 columns
      let batch = RecordBatch(layout: layout)
      var cells: [Int: TestCell] = [:]
      var expected: [String] = []
      var rest = pattern
      for slot in slots {
        switch rest % 3 {
        case 1:
          cells[slot] = .null
          expected.append("\"c\(slot)\":null")
        case 2:
          cells[slot] = .integer(Int64(slot))
          expected.append("\"c\(slot)\":\(slot)")
        default: break
        }
        rest /= 3
      }
      batch.addRow(cells)
      #expect(batch.lines() == "{\(expected.joined(separator: ","))}\n")
    }
  }

  @Test("A layout without columns makes empty objects")
  func noColumns() {
    let batch = RecordBatch(layout: .plain([], slotCount: 3))
    batch.addRow([0: .integer(1)])
    #expect(batch.lines() == "{}\n")
  }
}
