import JSON
import Pipeline
import TestSupport
import Testing

@testable import PubSubETL

/// Editors take names and defaults from `pipelines/pipeline.schema.json`; the program takes them
/// from its reader. Here the two are held together, and the file to what the registries generate.
@Suite("pipeline.schema.json")
struct PipelineSchemaTests {
  private let schema: JSONValue
  private let file: String

  init() throws {
    let root = #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
    self.file = "/\(root)/pipelines/pipeline.schema.json"
    self.schema = try PipelineConfiguration.document(self.file).value
  }

  @Test("The file equals the output of pubsub-etl pipeline-schema")
  func generated() throws {
    #expect(String(decoding: try TextFile.read(self.file), as: UTF8.self) == PipelineSchema.text)
  }

  /// Follows references, and of alternatives takes the last, which is the object.
  private func resolve(_ schema: JSONValue) -> JSONValue {
    if let reference = schema["$ref"]?.string,
      let definition = self.schema["definitions"]?[String(reference.split(separator: "/")[2])]
    {
      return self.resolve(definition)
    }
    if let alternative = schema["oneOf"]?.array?.last { return self.resolve(alternative) }
    return schema
  }

  private func part(_ path: [String]) throws -> JSONValue {
    var part = self.schema
    for name in path {
      let next =
        switch name {
        case "[]": part["items"]
        case "*": part["additionalProperties"]
        case _ where name.hasPrefix("["):
          self.alternative(String(name.dropFirst().dropLast()), of: part)
        default: part["properties"]?[name]
        }
      part = self.resolve(try #require(next, "\(path)"))
    }
    return part
  }

  /// The element of an array that is of a type, by its `type`.
  private func alternative(_ type: String, of array: JSONValue) -> JSONValue? {
    self.alternatives(of: array).first { $0["properties"]?["type"]?["const"]?.string == type }
  }

  private func alternatives(of array: JSONValue) -> [JSONValue] {
    var items = array["items"]
    if let name = items?["$ref"]?.string?.split(separator: "/").last {
      items = self.schema["definitions"]?[String(name)]
    }
    return (items?["oneOf"]?.array ?? []).map(self.resolve)
  }

  private static let postgres = #"sinks.0={"type":"postgres"}"#

  @Test(
    "Each object has exactly the keys that the reader knows",
    arguments: [
      ("x", [], []), ("source.x", ["source"], []), ("source.org.x", ["source", "org"], []),
      ("source.org.tls.x", ["source", "org", "tls"], []),
      ("source.org.proxy.x", ["source", "org", "proxy"], []),
      ("sinks.0.x", ["sinks", "[files]"], []),
      ("sinks.0.compression.x", ["sinks", "[files]", "compression"], []),
      ("sinks.0.rotate.x", ["sinks", "[files]", "rotate"], []), ("commit.x", ["commit"], []),
      ("checkpoint.x", ["checkpoint"], []), ("dead_letter.x", ["dead_letter"], []),
      ("source.snapshot.x", ["source", "snapshot"], ["source.snapshot={}"]),
      ("repair.x", ["repair"], ["repair={}"]), ("run.x", ["run"], []),
      ("retry.x", ["retry"], ["retry={}"]),
      ("allowance.x", ["allowance"], ["allowance={}"]),
      ("sinks.0.x", ["sinks", "[postgres]"], [Self.postgres]),
      ("sinks.0.tables.x", ["sinks", "[postgres]", "tables"], [Self.postgres]),
      ("stages.0.x", ["stages", "[flatten]"], [#"stages=[{"type":"flatten"}]"#]),
      ("stages.0.x", ["stages", "[select]"], [#"stages=[{"type":"select","columns":["A"]}]"#]),
      ("stages.0.x", ["stages", "[drop]"], [#"stages=[{"type":"drop","columns":["A"]}]"#]),
      ("stages.0.x", ["stages", "[rename]"], [#"stages=[{"type":"rename","columns":{"A":"B"}}]"#]),
      (
        "stages.0.x", ["stages", "[mask]"],
        [
          #"stages=[{"type":"mask","columns":["A"],"with":"drop"}]"#, "dead_letter.payload=none",
        ]
      ),
      ("stages.0.x", ["stages", "[cast]"], [#"stages=[{"type":"cast","columns":{"A":"text"}}]"#]),
      (
        "stages.0.columns.A.x", ["stages", "[cast]", "columns", "*"],
        [#"stages=[{"type":"cast","columns":{"A":{"to":"text"}}}]"#]
      ),
      (
        "sinks.0.stages.0.x", ["sinks", "[files]", "stages", "[drop]"],
        [#"sinks.0.stages=[{"type":"drop","columns":["A"]}]"#]
      ),
      (
        "source.org.auth.x", ["source", "org", "auth"],
        [
          "source.org.auth={\"type\":\"token\",\"instance_url\":\"https://a\",\"access_token_file\":\"t\"}"
        ]
      ),
    ])
  func keys(unknown: String, path: [String], sets: [String]) throws {
    let sample = try SamplePipeline()
    // A key that nobody knows makes the reader list those it knows.
    let mistakes = try sample.mistakes(sets: sets + ["\(unknown)=1"])
    let known = try #require(
      mistakes.first { $0.contains("known: ") }?.split(separator: "known: ").last)
    let names = try #require(self.part(path)["properties"]?.members).map(\.name)
    #expect(
      Set(known.split(separator: ", ").map(String.init)).subtracting(["$schema"])
        == Set(names).subtracting(["//", "$schema"]), "\(unknown)")
    #expect(try self.part(path)["additionalProperties"]?.boolean == false, "\(unknown)")
  }

  @Test("The stages are those of the registry")
  func stages() throws {
    let types = self.alternatives(of: try self.part(["stages"])).map {
      $0["properties"]?["type"]?["const"]?.string
    }
    #expect(types == TransformRegistry.names)
    #expect(
      try self.part(["stages", "[drop]", "missing"])["enum"]?.array?.compactMap(\.string)
        == ColumnNames.Missing.allCases.map(\.rawValue))
    // The file's own text is kept; what counts is the stage that is made of it.
    let sets = try self.sets(["stages", "[flatten]"], "stages.0.")
    #expect(!sets.isEmpty)
    let flatten = #"stages=[{"type":"flatten"}]"#
    #expect(try self.stage(sets: [flatten] + sets) == self.stage(sets: [flatten]))
    #expect(
      try self.stage(sets: [flatten, #"stages.0.naming="sobject""#])
        != self.stage(sets: [flatten]))
  }

  /// The only stage of a pipeline, member by member.
  private func stage(sets: [String]) throws -> String {
    let stages = try SamplePipeline().load(sets: sets).stages
    var text = ""
    dump(try #require(stages.first).transform(), to: &text)
    return text
  }

  @Test("The sinks are those of the registry")
  func sinks() throws {
    let types = self.alternatives(of: try self.part(["sinks"])).map {
      $0["properties"]?["type"]?["const"]?.string
    }
    #expect(types == SinkRegistry.names)
  }

  @Test("Every member has a description and a type, and every object is closed")
  func members() throws {
    var count = 0
    func visit(_ value: JSONValue, _ path: String) {
      if let properties = value["properties"]?.members {
        #expect(value["additionalProperties"] == false, "\(path)")
        for member in properties where member.name != "//" {
          count += 1
          let place = "\(path)/\(member.name)"
          #expect(member.value["description"]?.string?.isEmpty == false, "\(place)")
          #expect(
            ["type", "$ref", "oneOf"].contains { member.value[$0] != nil }, "\(place)")
        }
      }
      for member in value.members ?? [] { visit(member.value, "\(path)/\(member.name)") }
      for element in value.array ?? [] { visit(element, path) }
    }
    visit(self.schema, "")
    #expect(count > 70)
  }

  @Test("Writing out the defaults changes nothing")
  func defaults() throws {
    let sets = self.sets
    let all =
      try sets(["source"], "source.") + sets(["source", "org"], "source.org.")
      + sets(["sinks", "[files]"], "sinks.0.")
      + sets(["sinks", "[files]", "rotate"], "sinks.0.rotate.")
      + sets(["sinks", "[files]", "compression"], "sinks.0.compression.")
      + sets(["commit"], "commit.")
      + sets(["checkpoint"], "checkpoint.") + sets(["dead_letter"], "dead_letter.")
      + sets(["run"], "run.")
    #expect(all.count == 27)
    try self.expectNoChange(by: all)
  }

  @Test("Defaults of a postgres sink are those of the program")
  func postgresDefaults() throws {
    let all =
      try self.sets(["sinks", "[postgres]"], "sinks.0.")
      + self.sets(["sinks", "[postgres]", "tables"], "sinks.0.tables.")
    #expect(all.count == 11)
    try self.expectNoChange(by: all, beside: [Self.postgres])
  }

  /// Options that name the default of each property.
  private func sets(_ path: [String], _ prefix: String) throws -> [String] {
    try #require(self.part(path)["properties"]?.members).compactMap { member in
      member.value["default"].map { "\(prefix)\(member.name)=\($0.text())" }
    }
  }

  private func expectNoChange(by sets: [String], beside others: [String] = []) throws {
    let sample = try SamplePipeline()
    func text(_ sets: [String]) throws -> String {
      var text = ""
      dump(try sample.load(sets: sets), to: &text)
      return text
    }
    let (written, unwritten) = (try text(others + sets), try text(others))
    #expect(written == unwritten)
  }
}
