import JSON
import Pipeline
import PubSubSource

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
  /// How the fields of the events' objects are classified; nil where no stage asks.
  var classification: OrgClassification?
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
    if let cases = document["cases"]?.array, cases.isEmpty {
      reader.report("cases", "is empty: a file without cases tests nothing")
    }
    let cases = PipelineTestReader(configuration, base: base, mistakes: mistakes).cases(reader)
    let classification = Self.classification(reader, configuration, cases)
    reader.finish()
    guard mistakes.isEmpty else {
      throw PipelineTestError(
        mistakes: mistakes.inTextOrder.map { ConfigurationMistake(file: path, mistake: $0) })
    }
    return PipelineTestFile(
      path: path, text: text, document: document, configuration: configuration, org: org,
      classification: classification, cases: cases)
  }

  /// `"classification": {"Contact": {"Email": {"compliance": ["PII"], "sensitivity": "Restricted"}}}`: the
  /// fields that are named; all others are not classified.
  private static func classification(
    _ reader: JSONReader, _ configuration: PipelineConfiguration, _ cases: [PipelineTestCase]
  ) -> OrgClassification? {
    let objects = reader.object("classification")
    let selectors = configuration.classificationSelectors
    guard !selectors.isEmpty else {
      if objects != nil {
        reader.report("classification", "no stage of the pipeline masks by classification")
      }
      return nil
    }
    guard let objects else {
      if !reader.has("classification") {
        reader.report(
          "classification",
          "is required, because a stage masks by it and a test asks no org; such as {\"Contact\": "
            + "{\"Email\": {\"compliance\": [\"PII\"]}}}")
      }
      return nil
    }
    defer { objects.finish() }
    let layouts = Self.layouts(of: cases)
    let known = OrgClassification()
    var answers: [String: ObjectClassification] = [:]
    for member in objects.value.members ?? [] where member.name != "//" {
      guard let fields = objects.object(member.name) else { continue }
      var object = ObjectClassification()
      for field in fields.value.members ?? [] where field.name != "//" {
        guard let values = fields.object(field.name) else { continue }
        let known = layouts.filter { $0.entity == member.name }
        if !known.isEmpty { Self.check(field.name, in: fields, known) }
        object.add(
          field.name,
          FieldClassification(
            compliance: values.strings("compliance") ?? [],
            sensitivity: [values.string("sensitivity")].compactMap { $0 }))
        values.finish()
      }
      fields.finish()
      answers[member.name] = object
    }
    for layout in layouts {
      guard var object = answers[layout.entity] else {
        reader.report(
          "classification",
          "does not have the object '\(layout.entity)' of an event; {} classifies none")
        continue
      }
      object.describe(layout)
      _ = known.learn(object, of: layout.entity, schemaID: layout.schemaID, selectors: selectors)
    }
    return known
  }

  /// One for each schema.
  private static func layouts(of cases: [PipelineTestCase]) -> [RecordLayout] {
    var seen: Set<[String]> = []
    return cases.flatMap(\.events).compactMap { event in
      seen.insert([event.topic, event.schemaID]).inserted ? event.layout : nil
    }
  }

  /// A field that no schema has would be classified for nothing: the test would pass, and the field
  /// that was meant would go out in clear.
  private static func check(_ name: String, in fields: JSONReader, _ layouts: [RecordLayout]) {
    var known: [String] = []
    for column in layouts.flatMap(\.columns) where !column.isMetadata {
      guard let field = column.path.first else { continue }
      known.append(field)
      guard case .record(_, _, let children) = column.content else { continue }
      known += children.compactMap { child in
        child.path.last.map { FlattenNaming.sobject.name(of: $0, in: field) }
      }
    }
    guard !known.contains(where: { $0.lowercased() == name.lowercased() }) else { return }
    let hint = nearest(to: name, among: known).map { "; did you mean '\($0)'?" } ?? ""
    fields.report(name, "the events' schemas of this object have no such field\(hint)")
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

  /// Nil for a schema that no event can have; the reader has reported it.
  var layout: RecordLayout? {
    try? AvroEventDecoder(json: self.schema, schemaID: self.schemaID, topic: self.topic).layout
  }
}

struct ExpectedLetter: Equatable {
  /// The number of the event in the case, from 1.
  var event: Int
  /// The sink that refuses the event; nil when the pipeline does.
  var sink: String?
  /// A part of the reason.
  var reason: String
}
