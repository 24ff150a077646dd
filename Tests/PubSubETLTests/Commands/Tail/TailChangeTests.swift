import ArgumentParser
import JSON
import Testing

@testable import PubSubETL

@Suite("Tail")
struct TailChangeTests {
  private final class Printed {
    var text = ""
  }

  private let now: Int64 = 1_771_301_100_000

  private func line(_ text: String) throws -> JSONValue { try JSONValue(parsing: text) }

  private func output(_ printed: Printed, _ form: TailOutput.Form) -> TailOutput {
    TailOutput(
      form, hiding: SecretMask(), now: { [now] in now },
      write: { printed.text += $0.text })
  }

  private static let create = """
    {"_entity":"Opportunity","_change_type":"CREATE","_record_id":"006A",\
    "_commit_timestamp":"2026-02-17T04:03:15.000Z","_commit_user":"005A","_changed_fields":[],\
    "Name":"Big deal","StageName":"Prospecting","Amount":100.0,"NextStep":null,\
    "LastModifiedDate":"2026-02-17T04:03:15.000Z"}
    """
  private static let update = """
    {"_entity":"Opportunity","_change_type":"UPDATE","_record_id":"006A",\
    "_commit_timestamp":"2026-02-17T04:04:15.000Z","_commit_user":"005B",\
    "_changed_fields":["StageName","Amount","LastModifiedDate"],"_nulled_fields":["Amount"],\
    "_diff_fields":["Description"],"StageName":"Closed Won","Amount":null,\
    "LastModifiedDate":"2026-02-17T04:04:15.000Z"}
    """

  @Test("A change is a block with its record's name and the values before it")
  func block() throws {
    let printed = Printed()
    let output = self.output(printed, .text(isColored: false))
    for text in [Self.create, Self.update] { try output.show(self.line(text)) }
    func time(_ milliseconds: Int64) -> String { Phrase.localTime(milliseconds, now: self.now) }
    #expect(
      printed.text == """
        \(time(1_771_300_995_000))  Opportunity "Big deal" 006A  CREATE by 005A
          Name       "Big deal"
          StageName  "Prospecting"
          Amount     100.0
        \(time(1_771_301_055_000))  Opportunity "Big deal" 006A  UPDATE by 005B
          StageName    "Prospecting" → "Closed Won"
          Amount       100.0 → null
          Description  (changed)

        """)
  }

  @Test("Without knowledge of a record, only its new values are shown")
  func unknown() throws {
    let printed = Printed()
    try self.output(printed, .text(isColored: false)).show(self.line(Self.update))
    #expect(printed.text.contains("\n  StageName    \"Closed Won\"\n"))
    #expect(printed.text.contains("  Opportunity 006A  UPDATE by 005B\n"))
  }

  @Test("Rows of tables have names in lower case, and null in each column that did not change")
  func rowOfTable() throws {
    var known = KnownValues()
    let row = """
      {"_entity":"Opportunity","_change_type":"UPDATE","_record_id":"006A",\
      "_commit_timestamp":"2026-02-17T09:34:15.04+05:30","_changed_fields":["Amount"],\
      "stagename":null,"amount":5}
      """
    _ = TailChange(try self.line(Self.create), known: &known)
    let change = TailChange(try self.line(row), known: &known)
    #expect(change.time == 1_771_301_055_040)
    #expect(change.recordName == "Big deal")
    #expect(
      change.fields == [.init(name: "Amount", before: try self.line("100.0"), after: 5)])
    #expect(known["Opportunity 006A"]["stagename"] == "Prospecting")
  }

  @Test("Only colored text has escape sequences, and only those of colors")
  func colors() throws {
    let printed = Printed()
    let output = self.output(printed, .text(isColored: true))
    let hostile = Self.update.replacing(
      "Closed Won", with: "\\u001b]0;title\\u0007\\u001b[2J\\r\\nforged\\u202e\\u009b31m")
    try output.show(self.line(hostile.replacing("005B", with: "\\u001b[31m005B\\nfake")))
    let escapes = printed.text.split(separator: "\u{1B}", omittingEmptySubsequences: false)
      .dropFirst()
    #expect(escapes.map { $0.prefix(3) } == ["[33", "[0m"])
    for scalar in printed.text.unicodeScalars {
      #expect(scalar.value >= 0x20 || scalar == "\n" || scalar == "\u{1B}")
      #expect(![0x7F, 0x9B, 0x202E].contains(scalar.value))
    }
    #expect(printed.text.split(separator: "\n").count == 4, "a heading and three fields")
  }

  @Test("Huge values and many fields are cut")
  func huge() throws {
    let printed = Printed()
    let fields = (0..<500).map { "\"F\($0)__c\":\"\(String(repeating: "x", count: 20_000))\"" }
    let line = "{\"_entity\":\"A\",\"_change_type\":\"CREATE\",\(fields.joined(separator: ","))}"
    try self.output(printed, .text(isColored: false)).show(self.line(line))
    #expect(printed.text.utf8.count < 20_000)
    #expect(printed.text.hasSuffix("  and 440 more fields\n"))
    #expect(printed.text.contains("… (19,802 more characters)"))
  }

  @Test("What is known of records is bounded")
  func bounded() {
    var known = KnownValues(maxByteCount: 10_000)
    for number in 0..<10_000 {
      known.note([JSONMember("Name", "some name")], of: "Account \(number)")
      #expect(known["Account \(number)"]["Name"] == "some name")
    }
    #expect((0..<10_000).count { known["Account \($0)"]["Name"] != nil } < 200)
  }

  @Test("JSON is the line")
  func json() throws {
    let printed = Printed()
    try self.output(printed, .json).show(self.line(Self.update))
    #expect(try self.line(printed.text) == self.line(Self.update))
  }

  @Test(
    "Options that do not go together are refused",
    arguments: [
      (["/data/AccountChangeEvent", "--last", "5"], "give its file"),
      (["opps.json", "--last", "0"], "--last takes a number from 1 to 10000"),
      (["opps.json", "--last", "5", "--max-events", "1"], "--last shows none"),
      (["opps.json", "--org", "org.json"], "has its own org"),
      (["/data/AccountChangeEvent", "--sink", "x"], "belong to a pipeline file"),
      (["/data/Account"], "did you mean"), (["opps.json", "--max-events", "0"], "at least 1"),
    ])
  func options(arguments: [String], message: String) {
    #expect {
      try TailCommand.parse(arguments)
    } throws: {
      TailCommand.message(for: $0).contains(message)
    }
  }
}
