import Foundation
import JSON
import Testing

@testable import PubSubETL

/// The pages of the stages hold input lines, a configuration and output lines: what they say is what happens.
@Suite("Pages of the stages") struct StagePageTests {
  private static let folder = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()
    .appending(path: "Sources/Pipeline/Pipeline/Pipeline.docc")

  private static let header =
    #"{ "name": "ChangeEventHeader", "type": { "type": "record", "name": "ChangeEventHeader", "fields": ["#
    + #"{ "name": "entityName", "type": "string" },"#
    + #"{ "name": "recordIds", "type": { "type": "array", "items": "string" } },"#
    + #"{ "name": "changeType", "type": { "type": "enum", "name": "ChangeType", "symbols": ["#
    + #""CREATE", "UPDATE", "DELETE", "UNDELETE"] } }, { "name": "commitTimestamp", "type": "long" },"#
    + ["nulledFields", "diffFields", "changedFields"].map {
      #"{ "name": "\#($0)", "type": { "type": "array", "items": "string" } }"#
    }.joined(separator: ",") + "] } }"

  /// Events and the schema that their values need.
  private struct Events {
    var schema: String
    var list: [String] = []

    init(_ lines: [JSONValue]) throws {
      var fields: [(name: String, type: String)] = []
      for line in lines {
        let members = try #require(line.members)
        for member in members where !member.name.hasPrefix("_") {
          guard !fields.contains(where: { $0.name == member.name }) else { continue }
          let type: String =
            switch member.value.content {
            case .boolean: "boolean"
            case .number(let text): text.contains(".") ? "double" : "long"
            default: "string"
            }
          fields.append((member.name, type))
        }
        let payload = members.filter { !$0.name.hasPrefix("_") }.map {
          ", \"\($0.name)\": \($0.value.text())"
        }
        let changeType = line["_change_type"]?.string ?? "CREATE"
        self.list.append(
          #"{ "payload": { "ChangeEventHeader": { "changeType": "\#(changeType)", "recordIds": "#
            + #"["006000000000001AAA"] } \#(payload.joined()) } }"#)
      }
      let list = fields.map { #"{ "name": "\#($0.name)", "type": ["null", "\#($0.type)"] }"# }
      self.schema =
        #"{ "type": "record", "name": "OpportunityChangeEvent", "fields": ["#
        + ([StagePageTests.header] + list).joined(separator: ", ") + "] }"
    }
  }

  @Test(
    "The example of a page gives the output that the page shows",
    arguments: ["Filter", "Set", "Route", "Mask", "Cast"])
  func example(name: String) throws {
    let page = try String(
      contentsOf: Self.folder.appending(path: "\(name).md"), encoding: .utf8)
    let blocks = page.components(separatedBy: "```json\n").dropFirst().map {
      $0.components(separatedBy: "```")[0]
    }
    try #require(blocks.count >= 3)
    func lines(_ block: String) throws -> [JSONValue] {
      try block.split(separator: "\n").map { try JSONValue(parsing: String($0)) }
    }
    let names =
      page.matches(of: /lines of sink `(\w+)`/).map { String($0.output.1) }
    let outputs = names.isEmpty ? ["files"] : names
    try #require(outputs.count == blocks.count - 2)
    let sinks = outputs.map { #"{ "type": "files", "name": "\#($0)", "directory": "out/\#($0)" }"# }
    let members =
      blocks[1].hasPrefix("{") ? #""stages": [ \#(blocks[1]) ]"# : blocks[1]
    let pipeline = try SamplePipeline()
    try pipeline.write(
      SamplePipeline.minimal.replacing(
        #"{ "type": "files", "directory": "out" }"#, with: sinks.joined(separator: ", ")
      ).replacing(#""sinks""#, with: members + #", "sinks""#)
        .replacing(#""name": "opps""#, with: #""name": "p""#), to: "p.json")
    let events = try Events(try lines(blocks[0]))
    let expected = try zip(outputs, blocks[2...]).map { sink, block in
      "\"\(sink)\": [ \(try lines(block).map { $0.text() }.joined(separator: ", ")) ]"
    }
    try pipeline.write(
      """
      { "schema": \(events.schema),
        "environment": { "MASK_KEY": "0123456789abcdef", "LETTER_KEY": "\(String(repeating: "0", count: 64))" },
        "cases": [ { "name": "page", "events": [ \(events.list.joined(separator: ", ")) ],
          "expect": { \(expected.joined(separator: ", ")) } } ] }
      """, to: "p.test.json")
    let file = try PipelineTestFile.load("\(pipeline.base)/p.test.json")
    let run = PipelineTestRun(
      configuration: file.configuration, org: file.org, classification: file.classification)
    let test = try #require(file.cases.first)
    let findings = PipelineTestVerdict(test, try run.outcome(of: test)).findings
    #expect(findings == [], "\(findings)")
  }
}
