import ArgumentParser
import Foundation
import Glibc
import JSON
import Testing

@testable import PubSubETL

@Suite("Test cases of a pipeline") struct PipelineTestTests {
  private static let repository = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  private static let pipelines = Self.repository.appending(path: "pipelines").path

  /// A pipeline with a test file beside it, and an object with a name and an amount.
  private struct Sample {
    let pipeline: SamplePipeline

    init(stages: String = "", sinks: String = #"{ "type": "files", "directory": "out" }"#) throws {
      self.pipeline = try SamplePipeline()
      var text = SamplePipeline.minimal.replacing(
        #"{ "type": "files", "directory": "out" }"#, with: sinks)
      text = text.replacing(#""sinks""#, with: #""stages": [\#(stages)], "sinks""#)
      try self.pipeline.write(text, to: "p.json")
    }

    func load(_ test: String) throws -> PipelineTestFile {
      try self.pipeline.write(test, to: "p.test.json")
      return try PipelineTestFile.load("\(self.pipeline.base)/p.test.json")
    }

    func verdicts(_ test: String) throws -> [PipelineTestVerdict] {
      let file = try self.load(test)
      _ = try file.checkColumns()
      let run = PipelineTestRun(
        configuration: file.configuration, org: file.org, classification: file.classification)
      return try file.cases.map { PipelineTestVerdict($0, try run.outcome(of: $0)) }
    }

    func mistakes(_ test: String) throws -> [String] {
      do {
        _ = try self.load(test)
        return []
      } catch let error as PipelineTestError {
        return error.mistakes.map { "\($0.mistake)" }
      }
    }
  }

  /// A test file with one case that has this update.
  private static func test(
    _ fields: String, _ rest: String, match: String = "fields"
  ) -> String {
    """
    { "schema": "\(Self.pipelines)/schemas/OpportunityChangeEvent.avsc", "match": "\(match)",
      "cases": [ { "name": "one", "events": [ { "payload": {
        "ChangeEventHeader": { "changeType": "UPDATE", "recordIds": ["006000000000001AAA"] },
        \(fields) } } ], \(rest) } ] }
    """
  }

  @Test(
    "The cases of every pipeline file of this repository pass",
    arguments: ["opps", "opps-postgres", "order-events", "all-changes", "sales", "sales-postgres"])
  func shipped(name: String) throws {
    let file = try PipelineTestFile.load("\(Self.pipelines)/\(name)\(PipelineTestFile.suffix)")
    let run = PipelineTestRun(
      configuration: file.configuration, org: file.org, classification: file.classification)
    #expect(!file.cases.isEmpty)
    for test in file.cases {
      #expect(test.expected?.isEmpty == false)
      #expect(PipelineTestVerdict(test, try run.outcome(of: test)).findings == [])
    }
  }

  @Test("Every pipeline file of this repository has cases")
  func coverage() throws {
    let names = try FileManager.default.contentsOfDirectory(atPath: Self.pipelines)
    let others: Set<String> = ["org.json", "pipeline.schema.json"]
    for name in names where name.hasSuffix(".json") && !others.contains(name) {
      guard !name.hasSuffix(PipelineTestFile.suffix) else { continue }
      #expect(names.contains(name.replacing(".json", with: PipelineTestFile.suffix)), "\(name)")
    }
  }

  @Test("A file with an empty list of cases is refused")
  func noCases() throws {
    let mistakes = try Sample().mistakes(#"{ "cases": [] }"#)
    #expect(mistakes.contains { $0.contains("a file without cases tests nothing") }, "\(mistakes)")
  }

  @Test("A wrong, missing or unexpected field is a difference, and metadata is not")
  func fields() throws {
    let found = try Sample().verdicts(
      Self.test(
        #""Name": "Acme", "Amount": 5"#,
        #""expect": { "files": [ { "Amount": 6.0, "StageName": "x" } ] }"#))
    #expect(
      found[0].findings == [
        PipelineTestVerdict.Finding(
          place: "sink 'files', line 1",
          differences: [
            LineDifference(
              member: "Amount", expected: JSONValue(.number("6.0")),
              found: JSONValue(.number("5.0"))),
            LineDifference(member: "StageName", expected: "x", found: nil),
            LineDifference(member: "Name", expected: nil, found: "Acme"),
          ])
      ])
  }

  @Test(
    "The case decides how much of a line is compared",
    arguments: [("fields", false), ("subset", true), ("exact", false)])
  func match(match: String, passes: Bool) throws {
    let found = try Sample().verdicts(
      Self.test(
        #""Name": "Acme", "Amount": 5"#,
        #""expect": { "files": [ { "Amount": 5.0, "_change_type": "UPDATE" } ] }"#, match: match))
    #expect(found[0].hasPassed == passes)
  }

  @Test("Missing and excess lines are differences")
  func counts() throws {
    for lines in ["", #"{ "Amount": 5 }, { "Amount": 5 }"#] {
      let found = try Sample().verdicts(
        Self.test(#""Amount": 5"#, #""expect": { "files": [ \#(lines) ] }"#))
      #expect(found[0].findings.count == 1)
    }
  }

  @Test("Stages of the pipeline and of each sink apply")
  func stages() throws {
    let sinks = """
      { "type": "files", "directory": "a", "name": "a", "stages": [
        { "type": "drop", "columns": ["Amount"] } ] }, { "type": "stdout" }
      """
    let found = try Sample(
      stages: #"{ "type": "filter", "where": "Amount > 1.0" }"#, sinks: sinks
    ).verdicts(
      Self.test(
        #""Name": "Acme", "Amount": 5"#,
        #""expect": { "a": [ { "Name": "Acme" } ], "stdout": [ { "Name": "Acme", "Amount": 5 } ] }"#
      ))
    #expect(found[0].findings == [])
    let none = try Sample(stages: #"{ "type": "filter", "where": "Amount > 9.0" }"#).verdicts(
      Self.test(#""Amount": 5"#, #""expect": { "files": [] }"#))
    #expect(none[0].findings == [])
  }

  @Test("An event that a stage refuses is a dead letter, which the case has to expect")
  func deadLetters() throws {
    let sample = try Sample(
      stages: #"{ "type": "set", "columns": { "X": "1 / int(Amount)" } }"#)
    let silent = try sample.verdicts(Self.test(#""Amount": 0"#, #""expect": { "files": [] }"#))
    #expect(silent[0].findings.map(\.place) == ["dead letters"])
    let expected = try sample.verdicts(
      Self.test(
        #""Amount": 0"#, #""dead_letters": [ { "event": 1, "reason": "division by zero" } ]"#))
    #expect(expected[0].findings == [])
    let other = try sample.verdicts(
      Self.test(#""Amount": 0"#, #""dead_letters": [ { "event": 1, "reason": "overflow" } ]"#))
    #expect(other[0].findings.count == 2)
  }

  @Test("An updated case passes and keeps the author's order")
  func update() throws {
    let sample = try Sample()
    let test = Self.test(
      #""Name": "Acme", "Amount": 5"#,
      #""expect": { "files": [ { "//": "why", "Amount": 6, "_record_id": "", "Name": "Acme" } ] }"#)
    let file = try sample.load(test)
    let verdict = try sample.verdicts(test)[0]
    let updated = verdict.updated(try #require(file.document["cases"]?.array?[0]))
    let line = updated["expect"]?["files"]?.array?[0].text()
    #expect(
      line == #"{"//":"why","Amount":5.0,"_record_id":"006000000000001AAA","Name":"Acme"}"#)
    let again = test.replacing(
      #"{ "//": "why", "Amount": 6, "_record_id": "", "Name": "Acme" }"#, with: try #require(line))
    #expect(try sample.verdicts(again)[0].findings == [])
  }

  @Test("An update without expectations writes the lines of every sink")
  func firstUpdate() throws {
    let sample = try Sample()
    let test = Self.test(#""Amount": 5"#, #""//": "no lines yet""#)
    let file = try sample.load(test)
    let updated = try sample.verdicts(test)[0].updated(
      try #require(file.document["cases"]?.array?[0]))
    #expect(
      updated["expect"]?.text()
        == #"{"files":[{"_change_type":"UPDATE","_record_id":"006000000000001AAA","Amount":5.0}]}"#)
  }

  @Test("The example of the documentation passes")
  func documentation() throws {
    let page = try String(
      contentsOf: Self.repository.appending(
        path: "Sources/Program/PubSubETL/PubSubETL.docc/TestingAPipeline.md"), encoding: .utf8)
    let blocks = page.components(separatedBy: "```json\n").dropFirst().map {
      $0.components(separatedBy: "```")[0]
    }
    try #require(blocks.count == 3)
    let sample = try Sample()
    try sample.pipeline.write(blocks[0], to: "p.json")
    try sample.pipeline.write(blocks[1], to: "OpportunityChangeEvent.avsc")
    let found = try sample.verdicts(blocks[2])
    #expect(found.count == 2)
    for verdict in found { #expect(verdict.findings == []) }
  }

  @Test("A mistake in a test file is reported with its place")
  func mistakes() throws {
    let sample = try Sample()
    #expect(
      try sample.mistakes(Self.test(#""Amuont": 5"#, #""expect": { "file": [] }"#)).map {
        String($0.prefix(70))
      } == [
        "/cases/0/expect/file: unknown key; did you mean 'files'?; known: files",
        "/cases/0/events/0/payload/Amuont: unknown key; did you mean 'Amount'?;",
      ])
    #expect(
      try sample.mistakes(#"{ "cases": [ { "events": [ { "payload": {} } ] } ] }"#)
        == ["/cases/0/events/0/schema: is required here, in the case, or in the file"])
  }

  @Test("Keys, logins and addresses need no value, and hashes are the same everywhere")
  func placeholders() throws {
    let mask = #"{ "type": "mask", "columns": ["Name"], "with": "hash", "key": "${MASK_KEY}" }"#
    let inFile = mask.replacing(#""key": "${MASK_KEY}""#, with: #""key_file": "none/mask.key""#)
    let letters = [
      #"{ "payload": "sealed", "key": "${LETTER_KEY}", "old_keys": ["${file:/none}"] }"#,
      #"{ "payload": "sealed", "key_file": "${LETTER_FILE}" }"#,
    ]
    var lines: Set<String> = []
    for stage in [mask, inFile] {
      for letter in letters {
        let sample = try Sample(
          stages: stage,
          sinks:
            #"{ "type": "files", "directory": "out" }, { "type": "postgres", "url": "${DB}" }, "#
            + #"{ "type": "postgres", "name": "other", "url": "${OTHER}" }"#)
        let text = try String(
          contentsOfFile: "\(sample.pipeline.base)/p.json", encoding: .utf8)
        try sample.pipeline.write(
          text.replacing(#""checkpoint""#, with: #""dead_letter": \#(letter), "checkpoint""#)
            .replacing(#""auth": {"#, with: #""tls": { "ca_file": "${CA}" }, "auth": {"#),
          to: "p.json")
        let found = try sample.verdicts(
          Self.test(#""Name": "Acme""#, #""expect": { "files": [] }"#))
        lines.insert(try #require(found[0].outcome.lines[0].lines[0]["Name"]?.string))
      }
    }
    #expect(lines.count == 1)
    #expect(lines.first?.count == 64)
  }

  @Test("A key that the test file sets is used")
  func keyOfTest() throws {
    let sample = try Sample(
      stages: #"{ "type": "mask", "columns": ["Name"], "with": "hash", "key": "${MASK_KEY}" }"#)
    let text = try String(contentsOfFile: "\(sample.pipeline.base)/p.json", encoding: .utf8)
    try sample.pipeline.write(
      text.replacing(
        #""checkpoint""#, with: #""dead_letter": { "payload": "none" }, "checkpoint""#),
      to: "p.json")
    let test = Self.test(#""Name": "Acme""#, #""expect": { "files": [] }"#)
    let names = try [test, test.replacing("{ \"schema\"", with: Self.key + #""schema""#)].map {
      try sample.verdicts($0)[0].outcome.lines[0].lines[0]["Name"]?.string
    }
    #expect(names[0] != names[1])
  }

  private static let key = #"{ "environment": { "MASK_KEY": "0123456789abcdef0123456789abcdef" }, "#

  @Test("A column that a stage names but no schema of the cases contains is a mistake")
  func unknownColumns() throws {
    let stage = #"{ "type": "drop", "columns": ["Amuont"] }"#
    let test = Self.test(#""Amount": 5"#, #""expect": { "files": [] }"#)
    let error = #expect(throws: RunFailure.self) {
      _ = try Sample(stages: stage).load(test).checkColumns()
    }
    #expect(error?.exitCode == .configuration)
    #expect(error?.message.contains("'Amuont' (nearest: Amount") == true)
    // Another topic may bring it.
    let sample = try Sample(stages: stage)
    let text = try String(contentsOfFile: "\(sample.pipeline.base)/p.json", encoding: .utf8)
    let topic = #""/data/OpportunityChangeEvent""#
    try sample.pipeline.write(
      text.replacing(topic, with: #"[\#(topic), "/data/ChangeEvents"]"#), to: "p.json")
    let file = try sample.load(
      test.replacing("{ \"schema\"", with: #"{ "topic": \#(topic), "schema""#))
    #expect(try file.checkColumns().count == 1)
    #expect(try Sample().load(test).checkColumns() == [])
  }

  @Test("An update keeps the layout, the mode and a symbolic link to the file")
  func layoutStays() throws {
    let sample = try Sample()
    let test = Self.test(
      #""Name":   "Acme", "Amount": 5"#,
      #""expect":{"files":[ {"Amount":6,"Name":"Acme"},{"Amount":5} ]}, "//":["kept"]"#)
    let base = sample.pipeline.base
    try sample.pipeline.write(test, to: "real.json")
    #expect(chmod("\(base)/real.json", 0o604) == 0)
    #expect(symlink("real.json", "\(base)/p.test.json") == 0)
    let command = try TestCommand.parse(["--update", "\(base)/p.test.json"])
    try command.run()
    #expect(
      try String(contentsOfFile: "\(base)/real.json", encoding: .utf8)
        == test.replacing(
          #"[ {"Amount":6,"Name":"Acme"},{"Amount":5} ]"#,
          with: #"[ {"Amount":5.0,"Name":"Acme"} ]"#))
    var status = stat()
    #expect(lstat("\(base)/p.test.json", &status) == 0 && status.st_mode & S_IFMT == S_IFLNK)
    #expect(lstat("\(base)/real.json", &status) == 0 && status.st_mode & 0o777 == 0o604)
  }

  @Test("An update does not overwrite a file that was edited after it was read")
  func editedMeanwhile() throws {
    let sample = try Sample()
    let test = Self.test(#""Amount": 5"#, #""expect": { "files": [] }"#)
    let file = try sample.load(test)
    let edited = test + "\n"
    try sample.pipeline.write(edited, to: "p.test.json")
    #expect(try !file.replaceText(with: file.document))
    #expect(try String(contentsOfFile: file.path, encoding: .utf8) == edited)
  }

  @Test("A FIFO in place of a file is a mistake and does not block the program")
  func pipes() throws {
    let sample = try Sample()
    let base = sample.pipeline.base
    #expect(mkfifo("\(base)/pipe", 0o600) == 0)
    #expect(
      try sample.mistakes(
        #"{ "schema": "pipe", "cases": [ { "events": [ { "payload": {} } ] } ] }"#
      )
      .contains("/schema: the file \(base)/pipe cannot be read: it is not a regular file"))
    #expect(mkfifo("\(base)/pipe.test.json", 0o600) == 0)
    #expect(throws: PipelineTestError.self) {
      try PipelineTestFile.load("\(base)/pipe.test.json")
    }
  }

  @Test("The process's environment has no influence, and unset variables are accepted")
  func environment() throws {
    let sample = try Sample(
      stages: #"{ "type": "set", "columns": { "Home": "'${HOME:-none}'" } }"#)
    let found = try sample.verdicts(
      Self.test(#""Amount": 5"#, #""expect": { "files": [ { "Amount": 5, "Home": "none" } ] }"#))
    #expect(found[0].findings == [])
  }

  @Test("Columns that stages add appear in no field list")
  func addedColumns() throws {
    let columns = (1...16).map { #""C\#($0)": "Amount > \#($0).0""# }.joined(separator: ", ")
    let sample = try Sample(
      stages: #"{ "type": "set", "columns": { \#(columns) } }"#,
      sinks: #"{ "type": "postgres", "name": "db", "url": "${DB}" }"#)
    let verdicts = try sample.verdicts(
      Self.test(
        #""Amount": 12.5"#,
        #""expect": { "db": [ { "_changed_fields": [], "c1": true, "c16": false } ] }"#,
        match: "subset"
      ).replacing("UPDATE", with: "CREATE"))
    #expect(verdicts.map(\.findings) == [[]])
  }

  private static let masks =
    #"{ "type": "mask", "classified": { "compliance": ["PII"] }, "with": "redact" }"#

  /// A case of a pipeline that masks by classification.
  private static func classified(_ member: String) -> String {
    Self.test(
      #""Name": "Acme", "StageName": "New""#,
      #""expect": { "files": [ { "Name": "***", "StageName": "New" } ] }"#, match: "subset"
    ).replacing(#"{ "schema""#, with: #"{ \#(member) "schema""#)
  }

  private static func sample() throws -> Sample {
    let sample = try Sample(stages: Self.masks)
    let text = try String(contentsOfFile: "\(sample.pipeline.base)/p.json", encoding: .utf8)
    try sample.pipeline.write(
      text.replacing(
        #""sinks""#, with: #""dead_letter": { "payload": "none" }, "sinks""#), to: "p.json")
    return sample
  }

  @Test("The test file gives the classification by which a mask selects")
  func classification() throws {
    let verdicts = try Self.sample().verdicts(
      Self.classified(
        #""classification": { "Opportunity": { "Name": { "compliance": ["PII"] } } },"#))
    #expect(verdicts.map(\.findings) == [[]])
  }

  @Test(
    "A test file with a missing or unmatched classification is refused",
    arguments: [
      ("", "is required, because a stage masks by it"),
      (#""classification": {},"#, "does not have the object 'Opportunity'"),
      (#""classification": { "Opportunity": { "Name": ["PII"] } },"#, "expected an object"),
      (
        #""classification": { "Opportunity": { "Name": { "groups": ["PII"] } } },"#, "groups"
      ),
      (
        #""classification": { "Opportunity": { "Nmae": { "compliance": ["PII"] } } },"#,
        "/Nmae: the events' schemas of this object have no such field; did you mean 'Name'?"
      ),
    ])
  func classificationMistakes(member: String, expected: String) throws {
    let mistakes = try Self.sample().mistakes(Self.classified(member))
    #expect(mistakes.contains { $0.contains(expected) }, "\(mistakes)")
    let plain = try Sample().mistakes(Self.classified(#""classification": {},"#))
    #expect(plain.contains { $0.contains("no stage of the pipeline masks by classification") })
  }
}
