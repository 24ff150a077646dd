import ArgumentParser
import FileSink
import JSON
import Pipeline
import Testing

@testable import PubSubETL
@testable import RESTSource

@Suite("Options and report of verify") struct VerifyTests {
  @Test(
    "Options that contradict each other are refused",
    arguments: [
      ["p.json", "--full", "--sample", "5"], ["p.json", "--sample", "0"],
      ["p.json", "--sample", "1000001"], ["--full"], ["p.json", "--checksums", "--full"],
      ["p.json", "--checksums", "--repair"], ["p.json", "--checksums", "--entity", "A"],
    ])
  func refused(arguments: [String]) {
    #expect(throws: (any Error).self) { try VerifyCommand.parse(arguments) }
  }

  @Test("Several objects can be named")
  func parsed() throws {
    let command = try VerifyCommand.parse(["p.json", "--entity", "A", "--entity", "B", "--repair"])
    #expect(command.entity == ["A", "B"] && command.repair && !command.full)
  }

  @Test("Damaged files are named with their directory")
  func checksums() {
    var checksums = FileChecksums()
    checksums.fileCount = 3
    checksums.lineCount = 1200
    checksums.faultCount = 2
    checksums.faults = [FileChecksums.Fault(file: "Account/x.ndjson.zst", reason: "is missing")]
    let report = ChecksumReport(
      pipeline: "p",
      entries: [
        ChecksumReport.Entry(sink: "files", directory: "/out", checksums: checksums, lost: [])
      ])
    #expect(!report.isEqual)
    #expect(report.text.contains("DAMAGED: 2; undamaged: 3 files, "))
    #expect(report.text.contains("Account/x.ndjson.zst is missing\n"))
    #expect(report.text.contains("and 1 more"))
    let json = report.json
    #expect(json["equal"]?.boolean == false)
    let sink = json["sinks"]?.array?.first
    #expect(sink?["damaged"]?.integer == 2 && sink?["faults"]?.array?.count == 1)
  }

  @Test("Output that disappeared with its manifest is lost, and missing parts are not compared")
  func lostOutput() throws {
    let sample = try StateSample()
    let never = #expect(throws: RunFailure.self) { try ChecksumReport.read(sample.configuration) }
    #expect(never?.exitCode == .tryAgain && never?.reason == .nothingToCompare)
    let directory = try #require(sample.configuration.fileSinks.first?.directory)
    try sample.store(
      [StateSample.topic: sample.position(confirmedAt: 0)],
      sinks: [
        "files": [
          "directory": .string(directory), "files": [],
          "last_finished": "Opportunity/commit_date=2026-02-17/opps-x-e1-000000000000.ndjson.zst",
        ]
      ])
    let report = try ChecksumReport.read(sample.configuration)
    #expect(!report.isEqual && report.json["equal"] == false)
    #expect(report.text.contains("lost: "), "\(report.text)")
  }

  private static func report(
    _ depth: ObjectVerification.Depth, _ change: (inout VerifyReport.Entry) -> Void
  ) -> VerifyReport {
    var report = VerifyReport(pipeline: "p", depth: depth)
    var entry = VerifyReport.Entry(sink: "warehouse", entity: "Account")
    entry.horizon = 1_771_300_000_000
    entry.findings.equal = 1200
    change(&entry)
    if entry.findings.total == 0 { entry.findings.total = -entry.findings.uncounted }
    report.entries = [entry]
    report.apiCalls = 8
    return report
  }

  @Test("An equal copy is reported as equal, with the parts that were not compared")
  func equal() {
    let report = Self.report(.records) {
      $0.findings.tooYoung = 3
      $0.findings.marked = 1
      $0.blind.calculated = (1...8).map { "F\($0)__c" }
      $0.unread = [SnapshotPlan.Unread(name: "Logo", reason: .type("base64"))]
    }
    #expect(report.verdict == .equal)
    #expect(
      report.text == """
        sink          warehouse
        entity        Account: equal; 1,200 records of 1,204 compared, 1,200 equal, as of 2026-02-17T03:46:40.000Z
                      1 marked as stale, partial or waiting to be read again: not judged
                      3 changed since: too recent to compare
                      not comparable: Logo: REST has it as base64, which is not a value of the schema's type
                      not compared: Account: formulas and roll-ups: Salesforce may send no event when they change: F1__c, F2__c, \
        F3__c, F4__c, F5__c, F6__c and 2 more
        compared      which records there are, and when they were last changed; not their values: --full or \
        --sample N compares them
        API calls     8

        """)
  }

  @Test("Fields that nothing keeps current come with the line that refreshes them")
  func proposal() throws {
    var report = Self.report(.records) {
      $0.blind.calculated = ["Days__c", "Not_In_Events__c"]
      $0.columns = ["Name", "Days__c", "Rating"]
    }
    let line = #""refresh": {"fields":["Account.Days__c"],"every":"1d"}"#
    #expect(report.text.contains("nothing keeps Account.Days__c current; "), "\(report.text)")
    #expect(report.text.contains("runs read such fields once a day: \(line)\n"), "\(report.text)")
    report.refresh = RefreshConfiguration()
    #expect(report.json["proposed_refresh"] == .some(nil) && !report.text.contains("refresh"))
    report.refresh?.fields = .listed(["Account": ["Rating"]])
    #expect(
      report.proposedRefresh?["fields"]?.array?.compactMap(\.string) == [
        "Account.Days__c", "Account.Rating",
      ])
    #expect(report.text.contains("nothing keeps Account.Days__c current; "), "\(report.text)")
  }

  @Test("Fields that a refresh covers are not proposed, also if they differ since then")
  func covered() {
    var report = Self.report(.full) {
      $0.blind.calculated = ["Days__c"]
      $0.columns = ["Days__c", "Rating"]
      $0.findings.fields = [CopyFindings.Field(field: "Days__c", count: 1, records: ["g"])]
    }
    report.refresh = RefreshConfiguration(fields: .blind, every: .seconds(12 * 3600))
    #expect(report.unrefreshed.isEmpty && !report.text.contains("to refresh"))
    report.refresh?.fields = .listed(["Account": ["Days__c"]])
    #expect(report.unrefreshed.isEmpty && !report.text.contains("to refresh"))
    report.refresh?.fields = .listed(["Account": ["Rating"]])
    #expect(report.text.contains("runs read such fields every 12h: "), "\(report.text)")
  }

  @Test("Parts that could not be compared are not reported as equal", arguments: [0, 1])
  func notCompared(equal: Int) {
    let report = Self.report(.full) {
      $0.findings.equal = equal
      $0.findings.tooYoung = 3000
    }
    #expect(report.verdict == (equal == 0 ? .notCompared : .equal))
    #expect(report.text.contains("NOT COMPARED; 0 records of 3,000 compared") == (equal == 0))
    #expect(report.json["verdict"]?.string == (equal == 0 ? "not_compared" : "equal"))
    #expect(report.json["equal"]?.boolean == (equal != 0))
  }

  @Test("Drift is listed by kind, field and record, and JSON has every member")
  func drift() throws {
    var report = Self.report(.full) {
      $0.hasSettledTime = false
      $0.findings.missing = 6
      $0.findings.differing = 1
      $0.findings.records = ["missing": ["a", "b", "c", "d", "e", "f"], "differing": ["g"]]
      $0.findings.fields = [
        CopyFindings.Field(field: "BillingAddress.City", count: 1, records: ["g"])
      ]
    }
    report.obstacles = ["sink 'files' has changes only"]
    #expect(report.verdict == .drift)
    #expect(report.text.contains("Account: DRIFT; 1,207 records of 1,207 compared, 1,200 equal"))
    #expect(report.text.contains("not compared  sink 'files' has changes only\n"))
    #expect(report.text.contains("6 missing in the copy, or deleted there: a, b, c, d, e, …\n"))
    #expect(report.text.contains("BillingAddress.City: 1 differing: g\n"))
    #expect(report.text.contains("used its clock instead"))
    let json = report.json
    #expect(json["equal"]?.boolean == false && json["api_calls"]?.integer == 8)
    let table = try #require(json["tables"]?.array?.first)
    #expect(table["missing"]?.array?.count == 6)
    #expect(table["fields"]?.array?.first?["field"]?.string == "BillingAddress.City")
    #expect(table["records"]?["compared"]?.integer == 1207)
    #expect(table["not_found"]?.array?.isEmpty == true)
    #expect(table["blind"]?["hidden"]?.array?.isEmpty == true)
  }
}
