import Bytes
import JSON
import Pipeline
import PostgresClient
import PostgresSink
import TestSupport
import Testing

@Suite("COPY rows: values", .enabled(if: PostgresCluster.isAvailable)) struct CopyEncoderTests {
  /// Round trips have schemas of their own in it.
  private static let database = Task { try await TestDatabase() }

  /// Encodes one row for each value, copies them into the history table of a single column, and
  /// returns what the server makes of them, in order.
  private func roundTrip(
    _ type: ColumnType, salesforceType: String? = nil, as target: PostgresType? = nil,
    _ values: [TestCell], show: String = "%::text"
  ) async throws -> [String] {
    let database = try await Self.database.value
    let connection = try database.connect()
    let layout = RecordLayout.test([Column("V", 0, type, salesforceType: salesforceType)])
    let configuration = database.configuration {
      $0.mode = .history
      $0.schema = "s\(UInt64.random(in: 0 ... .max))"
      if let target { $0.columnTypes["V"] = target }
    }
    let tables = try TableCatalog(configuration).tables(for: layout, over: connection)
    let batch = RecordBatch(layout: layout)
    for (index, value) in values.enumerated() {
      batch.addChange("CREATE", "006A", ordinal: Int64(index), [MetadataSlot.count: value])
    }
    let encoder = CopyEncoder(layout: layout, tables: tables)
    var buffer = RowBuffer(columnCount: tables.dataColumns.count)
    for event in batch.events.indices { try encoder.append(event: event, of: batch, to: &buffer) }
    let history = try #require(tables.history)
    try buffer.copy(to: history, over: connection)
    let shown = show.split(separator: "%", omittingEmptySubsequences: false).joined(separator: "v")
    return try connection.column(
      "SELECT \(shown) FROM \(history.qualifiedName) ORDER BY _ordinal")
  }

  @Test("Numbers and booleans have their binary forms")
  func numbers() async throws {
    #expect(
      try await self.roundTrip(.boolean, [.integer(0), .integer(1), .null]) == [
        "false", "true", "-",
      ])
    #expect(
      try await self.roundTrip(.int32, [.integer(-2_147_483_648), .integer(2_147_483_647)])
        == ["-2147483648", "2147483647"])
    #expect(
      try await self.roundTrip(.int64, [.integer(.min), .integer(.max), .integer(-1)])
        == ["-9223372036854775808", "9223372036854775807", "-1"])
    #expect(
      try await self.roundTrip(
        .float, [.float(1.1), .float(.greatestFiniteMagnitude), .float(-.infinity), .float(.nan)])
        == ["1.1", "3.4028235e+38", "-Infinity", "NaN"])
    #expect(
      try await self.roundTrip(
        .double,
        [
          .double(0.1), .double(-0.0), .double(.leastNonzeroMagnitude), .double(.infinity),
          .double(.nan),
        ])
        == ["0.1", "-0", "5e-324", "Infinity", "NaN"])
  }

  @Test("Numbers are encoded as other types that the configuration names")
  func numbersAsOtherTypes() async throws {
    #expect(try await self.roundTrip(.double, as: .bigint, [.double(-3)]) == ["-3"])
    #expect(try await self.roundTrip(.double, as: .integer, [.double(70_000)]) == ["70000"])
    #expect(try await self.roundTrip(.double, as: .smallint, [.double(-7)]) == ["-7"])
    #expect(try await self.roundTrip(.double, as: .real, [.double(0.1)]) == ["0.1"])
    #expect(
      try await self.roundTrip(.double, as: .text, [.double(100), .double(.nan)]) == [
        "100.0", "NaN",
      ])
    #expect(try await self.roundTrip(.float, as: .text, [.float(0.1)]) == ["0.1"])
    #expect(try await self.roundTrip(.float, as: .doublePrecision, [.float(0.5)]) == ["0.5"])
    #expect(
      try await self.roundTrip(.float, as: .numeric, [.float(0.1), .float(-16_777_216)]) == [
        "0.1", "-16777216",
      ])
    #expect(
      try await self.roundTrip(
        .int64, as: .numeric, [.integer(.min), .integer(0), .integer(10_000)]) == [
          "-9223372036854775808", "0", "10000",
        ])
    #expect(try await self.roundTrip(.int32, as: .doublePrecision, [.integer(-5)]) == ["-5"])
    #expect(try await self.roundTrip(.int32, as: .smallint, [.integer(-5)]) == ["-5"])
    #expect(try await self.roundTrip(.int32, as: .text, [.integer(-5)]) == ["-5"])
    #expect(try await self.roundTrip(.boolean, as: .text, [.integer(1)]) == ["true"])
    #expect(
      try await self.roundTrip(
        .double, salesforceType: "Data:Currency", as: .doublePrecision, [.double(0.1)])
        == ["0.1"])
  }

  @Test(
    "Currency, percent and number are numeric with the shortest text of the double",
    arguments: ["Data:Currency", "Data:Percent", "Data:Double"])
  func decimalNumbers(salesforceType: String) async throws {
    var values: [Double] = [
      0, -0.0, 1, -1, 0.01, 0.1, 0.5, 1.05, 12.3, 99.99, 100, 10_000, 9999.99, 123_456_789.12, 1e12,
      9_999_999_999_999, 9_999_999_999_999.99, 1e13, 1e15, 1e16, 1e17, 1e20, 1e21, 1.5e22, 1e308,
      .greatestFiniteMagnitude, .leastNonzeroMagnitude, 1e-4, 1e-5, 1e-8, 1.234e-7,
      0.000123456789, 123.456, 0.1 + 0.2, 1.0 / 3, 2.0 / 3, -7654321.123456789, 65536.65536, .pi,
    ]
    for _ in 0..<3000 {
      let value = Double(bitPattern: .random(in: 0 ... .max))
      if value.isFinite { values.append(value) }
      values.append((Double.random(in: -1e9...1e9) * 100).rounded() / 100)
      values.append(Double.random(in: -1e6...1e6))
    }
    let cells = values.map { TestCell.double($0) } + [.double(.nan)]
    let texts = try await self.roundTrip(.double, salesforceType: salesforceType, cells)
    #expect(texts.last == "NaN")
    // What the server makes of the text that files have, without `.0` at the end.
    var line = ByteBuffer()
    for value in values {
      line.append(value)
      line.append(utf8: " ")
    }
    let connection = try await TestDatabase().connect()
    let expected = try connection.query(
      "SELECT trim_scale(t::numeric)::text FROM unnest(string_to_array(trim($1), ' ')) "
        + "WITH ORDINALITY AS u (t, n) ORDER BY n", [String(decoding: line.bytes, as: UTF8.self)])
    for (index, value) in values.enumerated() {
      #expect(texts[index] == expected[index, 0], "\(value)")
      #expect(Double(texts[index]) == value)
    }
  }

  @Test("Infinities are numeric if the server supports them; otherwise the event is refused")
  func infinities() async throws {
    let values: [TestCell] = [.double(.infinity), .double(1), .double(-.infinity), .double(.nan)]
    let server = try await TestDatabase().connect()
    if server.serverVersion >= 140_000 {
      #expect(
        try await self.roundTrip(.double, salesforceType: "Data:Percent", values)
          == ["Infinity", "1", "-Infinity", "NaN"])
      #expect(
        try await self.roundTrip(.float, as: .numeric, [.float(-.infinity), .float(.infinity)])
          == ["-Infinity", "Infinity"])
    }
    #expect(
      try await self.roundTrip(.double, values) == ["Infinity", "1", "-Infinity", "NaN"])
  }

  @Test("Decimals keep all digits of their scale")
  func decimals() async throws {
    let type = ColumnType.decimal(precision: 60, scale: 4)
    let wide = [0x7F] + [UInt8](repeating: 0xFF, count: 24)
    #expect(
      try await self.roundTrip(
        type,
        [
          .bytes([]), .bytes([0]), .bytes([1]), .bytes([0xFF]), .bytes([0x27, 0x10]),
          .bytes([0x80, 0, 0, 0, 0, 0, 0, 0]), .bytes(wide), .bytes([0x98, 0x96, 0x80]),
        ]) == [
          "0.0000", "0.0000", "0.0001", "-0.0001", "1.0000", "-922337203685477.5808",
          "80346902212949513777098104617058130126110149689139641765.0687", "-677.7216",
        ])
    #expect(
      try await self.roundTrip(.decimal(precision: 9, scale: 0), [.bytes([0x0F, 0x42, 0x40])])
        == ["1000000"])
    #expect(
      try await self.roundTrip(.decimal(precision: 9, scale: 2), as: .text, [.bytes([0x9C])])
        == ["-1.00"])
  }

  @Test("Dates and times are encoded up to the ends of their ranges")
  func times() async throws {
    #expect(
      try await self.roundTrip(
        .date(.milliseconds),
        [
          .integer(1_653_955_200_000), .integer(-1), .integer(-210_866_803_200_000),
          .integer(185_331_706_992_000_000 + 86_399_999),
        ])
        == ["2022-05-31", "1969-12-31", "4714-11-24 BC", "5874897-12-31"])
    #expect(
      try await self.roundTrip(.date(.days), [.integer(0), .integer(-719_163)]) == [
        "1970-01-01", "0001-12-31 BC",
      ])
    #expect(
      try await self.roundTrip(
        .timestamp(.milliseconds, isLocal: false),
        [
          .integer(1_771_300_995_000), .integer(-210_866_803_200_000),
          .integer(9_224_318_015_999_999),
        ],
        show: "(% AT TIME ZONE 'UTC')::text")
        == ["2026-02-17 04:03:15", "4714-11-24 00:00:00 BC", "294276-12-31 23:59:59.999"])
    #expect(
      try await self.roundTrip(.timestamp(.microseconds, isLocal: true), [.integer(1)])
        == ["1970-01-01 00:00:00.000001"])
    #expect(
      try await self.roundTrip(
        .timestamp(.nanoseconds, isLocal: true), [.integer(-1), .integer(1999)])
        == ["1969-12-31 23:59:59.999999", "1970-01-01 00:00:00.000001"])
    #expect(
      try await self.roundTrip(
        .time(.milliseconds), [.integer(0), .integer(86_399_999), .integer(86_400_000)])
        == ["00:00:00", "23:59:59.999", "24:00:00"])
    #expect(try await self.roundTrip(.time(.microseconds), [.integer(1)]) == ["00:00:00.000001"])
    #expect(try await self.roundTrip(.time(.nanoseconds), [.integer(1999)]) == ["00:00:00.000001"])
    #expect(
      try await self.roundTrip(
        .duration, [.bytes([1, 0, 0, 0, 2, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF])])
        == ["1 mon 2 days 1193:02:47.295"])
  }

  @Test("Texts, bytes, UUIDs and enumerations have their binary forms")
  func texts() async throws {
    #expect(
      try await self.roundTrip(.string, [.text(""), .text("a\u{0}b\u{0}"), .text("😀 \\N \t\n'\"")])
        == ["", "a\u{FFFD}b\u{FFFD}", "😀 \\N \t\n'\""])
    #expect(
      try await self.roundTrip(.enumeration(["NEW", "Würde"]), [.integer(1), .integer(0)])
        == ["Würde", "NEW"])
    #expect(
      try await self.roundTrip(.bytes, [.bytes([0, 255, 10]), .bytes([])]) == ["\\x00ff0a", "\\x"])
    let uuid = "0E984725-c51c-4bf4-9960-e1c80e27aba0"
    #expect(try await self.roundTrip(.uuid, [.text(uuid)]) == [uuid.lowercased()])
    #expect(try await self.roundTrip(.string, as: .uuid, [.text(uuid)]) == [uuid.lowercased()])
    #expect(try await self.roundTrip(.uuid, as: .text, [.text(uuid)]) == [uuid])
  }

  @Test("Multi-select picklists and lists of strings are arrays")
  func arrays() async throws {
    #expect(
      try await self.roundTrip(
        .string, salesforceType: "Data:MultiEnum",
        [.text("Red;Blue"), .text(""), .text("One"), .text("a,b;\"q\";;N\u{0}"), .text(";")])
        == ["{Red,Blue}", "{}", "{One}", "{\"a,b\",\"\\\"q\\\"\",\"\",N\u{FFFD}}", "{\"\",\"\"}"])
    #expect(
      try await self.roundTrip(
        .string, salesforceType: "Data:MultiEnum", as: .text, [.text("Red;Blue")]) == ["Red;Blue"])
    let json = #"["a", "b\"c\\", "\u00e4\ud83d\ude00\n", null, "x\u0000y", "\ud800"]"#
    #expect(
      try await self.roundTrip(
        .stringList, [.text(json), .text("[]"), .text("[\"\"]")], show: "to_json(%)::text")
        == [#"["a","b\"c\\","ä😀\n",null,"x�y","�"]"#, "[]", #"[""]"#])
    #expect(
      try await self.roundTrip(.stringList, as: .jsonb, [.text(#"["a"]"#)]) == [#"["a"]"#])
  }

  @Test("JSON is jsonb, without the escapes that jsonb refuses")
  func json() async throws {
    #expect(
      try await self.roundTrip(
        .json,
        [
          .text(#"{"a":[1,2.50,null]}"#), .text(#"{"a\u0000":"\\u0000 \\\u0000\u0001"}"#),
          .text(#""\u0000""#),
          .text("[]"),
        ])
        == [#"{"a": [1, 2.50, null]}"#, #"{"a�": "\\u0000 \\�\u0001"}"#, "\"\u{FFFD}\"", "[]"])
    #expect(try await self.roundTrip(.json, as: .text, [.text("{ }")]) == ["{ }"])
  }

  @Test("An event with a value that a column cannot hold is refused, and the buffer is unchanged")
  func rejections() async throws {
    let cases: [(ColumnType, PostgresType?, [TestCell])] = [
      (.double, .numeric, [.double(.infinity), .double(-.infinity)]),
      (.float, .numeric, [.float(.infinity)]),
      (.double, .bigint, [.double(0.5), .double(1e19), .double(.nan)]),
      (.double, .integer, [.double(3e9)]), (.double, .smallint, [.double(40_000)]),
      (.double, .real, [.double(1e39)]), (.int64, .integer, [.integer(1 << 31)]),
      (.int32, .smallint, [.integer(1 << 15)]),
      (
        .date(.milliseconds), nil,
        [
          .integer(.min), .integer(.max), .integer(-210_866_803_200_001),
          .integer(185_331_706_992_000_000 + 86_400_000),
        ]
      ),
      (.date(.days), nil, [.integer(2_147_483_647), .integer(-2_147_483_648)]),
      (
        .timestamp(.milliseconds, isLocal: false), nil,
        [
          .integer(.min), .integer(.max), .integer(-210_866_803_200_001),
          .integer(9_224_318_016_000_000),
        ]
      ),
      (.timestamp(.microseconds, isLocal: true), nil, [.integer(.min)]),
      (.time(.milliseconds), nil, [.integer(-1), .integer(86_400_001), .integer(.max)]),
      (
        .uuid, nil,
        [
          .text("0e984725-c51c-4bf4-9960-e1c80e27aba"),
          .text("0e984725xc51c-4bf4-9960-e1c80e27aba0"),
          .text("0e984725-c51c-4bf4-9960-e1c80e27abag"),
        ]
      ),
      (.duration, nil, [.bytes([0, 0, 0, 0x80] + [UInt8](repeating: 0, count: 8))]),
      (.decimal(precision: 4, scale: 2), nil, [.bytes([UInt8](repeating: 1, count: 100_000))]),
    ]
    let database = try await TestDatabase()
    let connection = try database.connect()
    for (index, (type, target, values)) in cases.enumerated() {
      let layout = RecordLayout.test([Column("Some_Value__c", 0, type)], entity: "E\(index)")
      let configuration = database.configuration {
        if let target { $0.columnTypes["Some_Value__c"] = target }
      }
      let tables = try TableCatalog(configuration).tables(for: layout, over: connection)
      let batch = RecordBatch(layout: layout)
      batch.addChange("DELETE", "1", ordinal: 0)
      for value in values {
        batch.addChange("CREATE", "1", ordinal: 1, [MetadataSlot.count: value])
      }
      let encoder = CopyEncoder(layout: layout, tables: tables, numericHasInfinity: false)
      var buffer = RowBuffer(columnCount: 1)
      try encoder.append(event: 0, of: batch, to: &buffer)
      let (bytes, rows, cells) = (buffer.bytes, buffer.rows.count, buffer.cells.count)
      for event in 1...values.count {
        let error = #expect(throws: RejectedValue.self, "\(type) \(values[event - 1])") {
          try encoder.append(event: event, of: batch, to: &buffer)
        }
        #expect(error?.column == "some_value__c" && error?.path == "Some_Value__c")
        #expect(buffer.bytes == bytes && buffer.rows.count == rows && buffer.cells.count == cells)
      }
      try encoder.append(event: 0, of: batch, to: &buffer)
      try buffer.copy(to: #require(tables.history), over: connection)
    }
  }
}
