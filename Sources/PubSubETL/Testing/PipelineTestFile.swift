import JSON

/// `opps.test.json` beside `opps.json`: events, and what each sink is expected to make of them.
struct PipelineTestFile {
  /// Absolute.
  var path: String
  /// As it was read; `--update` changes lines in it.
  var text: [UInt8]
  var document: JSONValue
  var configuration: PipelineConfiguration
  /// ID of the org that stages see.
  var org: String
  var cases: [PipelineTestCase]

  /// What a file with tests is called behind the name of its pipeline file.
  static let suffix = ".test.json"

  /// - Throws: `PipelineTestError`; `ConfigurationError` for mistakes in the pipeline file.
  static func load(_ path: String) throws -> PipelineTestFile {
    let text: [UInt8]
    let document: JSONValue
    do {
      (text, document) = try PipelineConfiguration.document(path)
    } catch {
      throw PipelineTestError(mistakes: error.mistakes)
    }
    let mistakes = JSONMistakes()
    let reader = JSONReader(document, mistakes: mistakes)
    _ = reader.string("$schema")
    let variables = Self.variables(reader)
    let base = FilePath.directory(of: path)
    let pipeline = reader.string("pipeline").map { FilePath.resolve($0, base: base) }
    let org = reader.string("org") ?? ""
    let configuration = try PipelineConfiguration.load(
      file: pipeline ?? String(path.dropLast(Self.suffix.count)) + ".json",
      environment: Environment(
        variable: { variables[$0] }, placeholder: TestPlaceholders.variable)
    ) { TestPlaceholders.replace(in: &$0, variables: variables) }
    let cases = PipelineTestReader(configuration, base: base, mistakes: mistakes).cases(reader)
    reader.finish()
    guard mistakes.isEmpty else {
      throw PipelineTestError(
        mistakes: mistakes.inTextOrder.map { ConfigurationMistake(file: path, mistake: $0) })
    }
    return PipelineTestFile(
      path: path, text: text, document: document, configuration: configuration, org: org,
      cases: cases)
  }

  /// The variables of the pipeline file: those of the process would make results depend on the machine.
  private static func variables(_ reader: JSONReader) -> [String: String] {
    guard let value = reader.any("environment") else { return [:] }
    let nested = JSONReader(value, path: reader.path(of: "environment"), mistakes: reader.mistakes)
    var variables: [String: String] = [:]
    for member in value.members ?? [] where member.name != "//" {
      variables[member.name] = nested.string(member.name)
    }
    return variables
  }
}

/// Mistakes in test files.
struct PipelineTestError: Error {
  var mistakes: [ConfigurationMistake]
}

/// How much of a line a case compares.
enum LineMatch: String, CaseIterable, Sendable {
  /// Every member whose name does not begin with an underscore, and those of the others that the case
  /// names.
  case fields
  /// The members that the case names.
  case subset
  /// Every member.
  case exact
}

struct PipelineTestCase {
  var name: String
  /// JSON pointer in the file.
  var path: String
  var position: JSONValue.Position
  var match: LineMatch
  var events: [PipelineTestEvent]
  /// By sink, in the order of the file; nil for a case that says nothing of lines.
  var expected: [(sink: String, lines: [JSONValue])]?
  var deadLetters: [ExpectedLetter]
}

/// An event as the service would deliver it.
struct PipelineTestEvent {
  var topic: String
  /// Text of the Avro schema.
  var schema: String
  var schemaID: String
  /// Avro binary.
  var payload: [UInt8]
  var eventID: String
  var replayID: [UInt8]
}

struct ExpectedLetter: Equatable {
  /// The number of the event in the case, from 1.
  var event: Int
  /// The sink that refuses the event; nil when the pipeline does.
  var sink: String?
  /// A part of the reason.
  var reason: String
}
