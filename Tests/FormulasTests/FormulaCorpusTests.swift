import Foundation
import JSON
import PostgresClient
import TestSupport
import Testing

@testable import Formulas

/// Formulas from public documentation, with the values that independent code gives for records with
/// all kinds of edges (Tests/Fixtures/formulas).
@Suite("Formulas from public documentation", .enabled(if: PostgresCluster.isAvailable))
struct FormulaCorpusTests {
  private struct Entry {
    var name: String
    var formula: Formula
    var scale: Int?
    /// The formula lies outside the language of formula fields.
    var mustBeRefused: Bool
  }

  /// The fields of the corpus, as columns of a table, and its formulas.
  private struct Fields: FormulaFields {
    var columns: [String: FormulaField] = [:]

    func field(at path: [String]) throws(FormulaRefusal) -> FormulaField {
      let name = path.joined(separator: ".")
      guard let field = self.columns[name.lowercased()] else {
        throw FormulaRefusal("field \(name) is not known")
      }
      return field
    }
  }

  private static func type(_ name: String) throws -> (FormulaType, sql: String) {
    switch name {
    case "Text", "Email", "Phone", "Url": (.text, "text")
    case "Currency", "Number": (.number, "numeric")
    case "Percent": (.percent, "numeric")
    case "Date": (.date, "date")
    case "DateTime": (.dateTime, "timestamptz")
    case "Time": (.time, "time")
    case "Checkbox": (.boolean, "boolean")
    case "Picklist": (.picklist, "text")
    case "MultiselectPicklist": (.multiPicklist, "text[]")
    case "Id", "Reference": (.id, "text")
    default: throw FormulaRefusal("type \(name)")
    }
  }

  private static func read(_ file: String) throws -> JSONValue {
    let directory = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().appendingPathComponent("Fixtures/formulas")
    return try JSONValue(
      parsing: [UInt8](Data(contentsOf: directory.appendingPathComponent(file))))
  }

  /// The records as a table, with its columns in SQL.
  private static func fill(
    _ corpus: JSONValue, over connection: PostgresConnection
  ) throws -> Fields {
    var fields = Fields()
    var definitions: [String] = []
    for field in corpus["fields"]?.array ?? [] {
      let name = try #require(field["name"]?.string)
      let (type, sql) = try Self.type(try #require(field["type"]?.string))
      let column = SQLIdentifier.quoted(name)
      fields.columns[name.lowercased()] = FormulaField(.column(column), type)
      definitions.append("\(column) \(sql)")
    }
    try connection.execute("CREATE TABLE records (\(definitions.joined(separator: ", ")))")
    for record in corpus["records"]?.array ?? [] {
      var (names, values): ([String], [String]) = ([], [])
      for field in corpus["fields"]?.array ?? [] {
        let name = try #require(field["name"]?.string)
        guard let value = record[name] else { continue }
        names.append(SQLIdentifier.quoted(name))
        if let text = value.string {
          let isList = field["type"]?.string == "MultiselectPicklist"
          let literal = SQLIdentifier.literal(text)
          values.append(isList ? "string_to_array(\(literal), ';')" : literal)
        } else {
          values.append(value.boolean.map { "\($0)" } ?? "NULL")
        }
      }
      try connection.execute(
        "INSERT INTO records (\(names.joined(separator: ", "))) "
          + "VALUES (\(values.joined(separator: ", ")))")
    }
    return fields
  }

  private static func entries(_ corpus: JSONValue) throws -> [Entry] {
    try (corpus["formulas"]?.array ?? []).map { item in
      let formula = Formula(
        try #require(item["formula"]?.string), try Self.type(try #require(item["type"]?.string)).0,
        treatsBlankAsZero: item["blank"]?.string == "zero")
      return Entry(
        name: try #require(item["name"]?.string), formula: formula,
        scale: item["scale"]?.integer.flatMap { Int(exactly: $0) },
        mustBeRefused: item["refuse"]?.boolean ?? false)
    }
  }

  /// SQL: a value in the corpus's form.
  private static func shown(_ sql: String, _ entry: Entry) -> String {
    switch entry.formula.type {
    case .number, .percent:
      // 15 digits, which a double has for sure.
      """
      (SELECT regexp_replace(regexp_replace(round(v.n::numeric, \(entry.scale ?? 0))::text, \
      '([.][0-9]*[1-9])0+$', E'\\\\1'), '[.]0+$', '') FROM (SELECT \(sql) AS n) AS v)
      """
    case .boolean: "(\(sql))::text"
    case .dateTime: "to_char(\(sql) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"
    case .time: "to_char(\(sql), 'HH24:MI:SS.MS')"
    default: "(\(sql))::text"
    }
  }

  @Test("Four of five are translated, and none gives another value") func corpus() async throws {
    let corpus = try Self.read("formulas.json")
    let expected = try Self.read("expected.json")
    let connection = try await TestDatabase().connect()
    var fields = try Self.fill(corpus, over: connection)
    let entries = try Self.entries(corpus)
    for entry in entries {
      fields.columns[entry.name.lowercased()] = FormulaField(
        .formula(entry.formula, path: []), entry.formula.type)
    }
    let now = SQLIdentifier.literal(try #require(corpus["now"]?.string)) + "::timestamptz"
    var (translated, total, values): (Int, Int, Int) = (0, 0, 0)
    var refusals: [String] = []
    for entry in entries {
      if !entry.mustBeRefused { total += 1 }
      let sql: String
      do throws(FormulaRefusal) {
        sql = try FormulaTranslator.translate(
          entry.formula, fields: fields, collation: "und-x-icu"
        ).sql.replacing("now()", with: now)
      } catch {
        if !entry.mustBeRefused { refusals.append("\(entry.name): \(error.reason)") }
        continue
      }
      #expect(!entry.mustBeRefused, "\(entry.name): \(entry.formula.text)")
      translated += 1
      let found = try connection.rows(
        "SELECT \"Id\", \(Self.shown(sql, entry)) FROM records")
      for row in found {
        guard let want = expected[entry.name]?[row[0]] else { continue }
        values += 1
        let allowed: [String] =
          want["readings"]?.array.map { $0.map(Self.text) }
          ?? [want["error"] == nil ? Self.text(want["value"] ?? nil) : "-"]
        #expect(
          allowed.contains(row[1]),
          "\(entry.name) of \(row[0]): \(entry.formula.text): \(row[1]), not \(allowed)")
      }
    }
    print("formulas: \(translated) of \(total) translated, \(values) values compared")
    for refusal in refusals { print("refused: \(refusal)") }
    #expect(translated * 10 >= total * 8)
    #expect(total >= 300)
  }

  private static func text(_ value: JSONValue) -> String {
    value.string ?? value.boolean.map { "\($0)" } ?? "-"
  }
}
