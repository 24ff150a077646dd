import JSON
import Testing

@testable import PubSubETL

@Suite("Encoding lines for publishing") struct PublishEncoderTests {
  private static let schema = """
    {"type":"record","name":"A__e","fields":[{"name":"CreatedDate","type":"long"},
      {"name":"CreatedById","type":"string"},{"name":"City__c","type":["null","string"],
      "default":null},{"name":"Data__c","type":["null","bytes"],"default":null}]}
    """

  private static func line(
    _ text: String, idField: String? = nil, createdBy: String? = "005000000000001"
  ) throws -> PublishLine {
    let encoder = try PublishEncoder(
      json: Self.schema, schemaID: "S", topic: "/event/A__e",
      options: PublishEncoder.Options(idField: idField, createdBy: createdBy))
    var line = PublishLine(number: 3, text: Array(text.utf8))
    encoder.encode(&line)
    return line
  }

  @Test("An event without an ID gets a unique one, and a given ID is kept")
  func ids() throws {
    let first = try Self.line("{}")
    let second = try Self.line("{}")
    #expect(first.outcome == nil && first.event != nil)
    #expect(first.id != second.id)
    let form = /[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/
    #expect(try form.wholeMatch(in: #require(first.id)) != nil)
    #expect(try Self.line(#"{"EventUuid":"a-1"}"#).id == "a-1")
    #expect(try Self.line(#"{"Key":"b","City__c":"x"}"#, idField: "Key").id == "b")
    // A member that is a field of the event as well.
    #expect(try Self.line(#"{"City__c":"x"}"#, idField: "City__c").id == "x")
  }

  @Test(
    "The outcome of an event that may have been published stays unknown despite a mistake in it")
  func mistakeAfterPublication() throws {
    let encoder = try PublishEncoder(
      json: Self.schema, schemaID: "S", topic: "/event/A__e",
      options: PublishEncoder.Options(createdBy: "005000000000001"))
    for text in [#"{"Gone__c":1}"#, "{"] {
      var line = PublishLine(number: 3, text: Array(text.utf8))
      line.mayBePublished = true
      encoder.encode(&line)
      guard case .unknown(let reason) = line.outcome else {
        Issue.record("\(String(describing: line.outcome))")
        continue
      }
      #expect(reason.hasPrefix("an earlier request had no answer; "))
    }
  }

  @Test(
    "The reason for a refusal is limited in bytes",
    arguments: ["x", "\u{301}", "\u{1F600}"])
  func longReason(text: String) throws {
    let name = String(repeating: text, count: 100_000)
    for line in [#"{"\#(name)":1}"#, #"{"\#(name)":1,"\#(name)":2}"#] {
      let result = try Self.line(line).json(hiding: SecretMask())
      #expect(result["status"]?.string == "refused")
      #expect((900...1000).contains(result["error"]?.string?.utf8.count ?? 0))
    }
  }

  @Test("Mistakes in a line take little memory, whatever the schema and the line contain")
  func longNames() throws {
    let symbols = (0..<5000).map { "S\(String(repeating: "x", count: 200))\($0)" }
    let fields = symbols.map { #"{"name":"F\#($0)","type":["null","int"],"default":null}"# }
    let schema = """
      {"type":"record","name":"A__e","fields":[{"name":"E","type":{"type":"enum","name":"N",
        "symbols":["\(symbols.joined(separator: #"",""#))"]}},\(fields.joined(separator: ","))]}
      """
    let encoder = try PublishEncoder(
      json: schema, schemaID: "S", topic: "/event/A__e", options: PublishEncoder.Options())
    let name = String(repeating: "n", count: 100_000)
    for text in [#"{"E":"bad"}"#, #"{"a":1,"b":1,"\#(name)":1}"#, #"{"\#(name)":1,"\#(name)":1}"#] {
      var line = PublishLine(number: 1, text: Array(text.utf8))
      encoder.encode(&line)
      guard case .refused(let reason) = line.outcome else {
        Issue.record("\(String(describing: line.outcome))")
        continue
      }
      #expect(reason.utf8.count <= 2000)
    }
  }

  @Test("A secret that the limit on a reason would cut is hidden")
  func dividedSecret() throws {
    let secrets = SecretMask()
    let secret = "00D000000000001!" + String(repeating: "s3cret", count: 4)
    secrets.add(secret)
    for count in 940...1010 {
      var line = PublishLine(number: 1)
      line.outcome = .unknown(
        String(repeating: "x", count: count) + secret + String(repeating: "y", count: 100))
      let reason = line.json(hiding: secrets)["error"]?.string ?? ""
      #expect(!reason.contains("00D"), "\(count)")
      #expect((900...1000).contains(reason.utf8.count))
    }
  }

  @Test("A line that is encoded again keeps its ID")
  func keepsID() throws {
    let encoder = try PublishEncoder(
      json: Self.schema, schemaID: "S", topic: "/event/A__e",
      options: PublishEncoder.Options(createdBy: "005000000000001"))
    var line = PublishLine(number: 1, text: Array("{}".utf8))
    encoder.encode(&line)
    let id = line.id
    encoder.encode(&line)
    #expect(line.id == id && line.encodings == 2)
  }

  @Test(
    "A mistake in a line is reported with its place",
    arguments: [
      ("{", "column 2: "),
      ("[]", "expected an object with the fields of the event, found an array"),
      (#"{"City__c":5}"#, "/City__c: expected a string, found a number"),
      (#"{"Citi__c":"x"}"#, "/Citi__c: unknown key; did you mean 'City__c'?"),
      (#"{"Data__c":"no base64!"}"#, "/Data__c: expected base64"),
      (#"{"EventUuid":"a b"}"#, "/EventUuid: expected the event's ID"),
      (#"{"EventUuid":5}"#, "/EventUuid: expected the event's ID"),
    ])
  func mistakes(text: String, message: String) throws {
    let line = try Self.line(text)
    guard case .refused(let reason) = line.outcome else {
      Issue.record("not refused: \(text)")
      return
    }
    #expect(reason.hasPrefix(message))
    #expect(line.event == nil)
  }

  @Test("Error messages contain no values")
  func hidesValues() throws {
    for text in [#"{"City__c":["s3cret"]}"#, #"{"CreatedDate":"s3cret"}"#, #"{"City__c":"s3cret"#] {
      guard case .refused(let reason) = try Self.line(text).outcome else {
        Issue.record("not refused: \(text)")
        return
      }
      #expect(!reason.contains("s3cret"))
    }
  }

  @Test("Without a user ID, the author of an event is unknown")
  func createdBy() throws {
    guard case .refused(let reason) = try Self.line("{}", createdBy: nil).outcome else {
      Issue.record("not refused")
      return
    }
    #expect(reason.contains("--created-by"))
    let line = try Self.line(#"{"CreatedById":"005000000000002"}"#, createdBy: nil)
    #expect(line.outcome == nil)
  }

  @Test("Each outcome is a line of the output")
  func results() throws {
    var line = PublishLine(number: 3, id: "a")
    func json(_ outcome: PublishOutcome) -> String {
      line.outcome = outcome
      return line.json(hiding: SecretMask()).text()
    }
    #expect(
      json(.published(replayID: [0, 0xAB]))
        == #"{"line":3,"id":"a","status":"published","replay_id":"00ab"}"#)
    #expect(json(.refused("no")) == #"{"line":3,"id":"a","status":"refused","error":"no"}"#)
    #expect(json(.unknown("x")) == #"{"line":3,"id":"a","status":"unknown","error":"x"}"#)
    #expect(json(.notSent("x")) == #"{"line":3,"id":"a","status":"not_sent","error":"x"}"#)
    #expect(json(.valid(byteCount: 7)) == #"{"line":3,"id":"a","status":"valid","bytes":7}"#)
  }
}
