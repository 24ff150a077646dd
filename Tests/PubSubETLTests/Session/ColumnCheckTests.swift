import Checkpoint
import Pipeline
import Testing

@testable import PubSubETL

@Suite("Columns that a pipeline file names")
struct ColumnCheckTests {
  private func layout(_ entity: String, _ names: [String], schemaID: String = "s1") -> RecordLayout
  {
    RecordLayout(
      topic: "/data/\(entity)ChangeEvent", schemaID: schemaID, entity: entity,
      family: .changeEvent, slotCount: names.count, fieldOrder: Array(names.indices),
      columns: names.enumerated().map { slot, name in
        Column(name: name, path: [name], content: .slot(slot, .string))
      })
  }

  private func planned(
    _ layouts: [RecordLayout], unknown: [String] = []
  ) -> PlannedLayouts {
    var planned = PlannedLayouts()
    planned.inputs = layouts
    planned.unknown = unknown
    return planned
  }

  /// The stages of a pipeline with one stage, or with what the options say.
  private func stages(_ stage: String? = nil, sets: [String] = []) throws -> RunStages {
    let own = stage.map { ["stages=[\($0)]"] } ?? []
    return RunStages(try SamplePipeline().load(sets: own + sets), org: "")
  }

  private func refusal(
    _ stages: RunStages, _ planned: PlannedLayouts, earlier: [String: Set<String>] = [:]
  ) -> String? {
    do {
      _ = try ColumnCheck(stages, planned, earlier: earlier)
      return nil
    } catch let failure as RunFailure {
      #expect(failure.exitCode == .configuration && failure.reason == .stages)
      return failure.message
    } catch {
      return "\(error)"
    }
  }

  private static let contact = ["Email", "Phone", "LastName"]

  @Test(
    "A name that no schema has is refused with its stage and the nearest names",
    arguments: [
      (#"{"type":"drop","columns":["Emial"]}"#, "stage drop (stages[0]): 'Emial' (nearest: Email)"),
      (#"{"type":"drop","columns":["email"]}"#, "stage drop (stages[0]): 'email' (nearest: Email)"),
      (
        #"{"type":"select","columns":["Email","Name"]}"#,
        "stage select (stages[0]): 'Name' (nearest: LastName)"
      ),
      (#"{"type":"rename","columns":{"Fax":"fax"}}"#, "stage rename (stages[0]): 'Fax'"),
    ])
  func refuses(stage: String, message: String) throws {
    let text = self.refusal(
      try self.stages(stage), self.planned([self.layout("Contact", Self.contact)]))
    #expect(
      text == "\(message) is not in any schema of this pipeline's topics; correct the name, or "
        + "set \"missing\" to \"ignore\" in the stage")
  }

  @Test("A name that some topic has is accepted, and ignore accepts any name")
  func accepts() throws {
    let both = self.planned([
      self.layout("Account", ["Name"]), self.layout("Contact", Self.contact),
    ])
    let drop = #"{"type":"drop","columns":["Email","Name"]}"#
    #expect(self.refusal(try self.stages(drop), both) == nil)
    let allowed = #"{"type":"drop","columns":["Emial"],"missing":"ignore"}"#
    #expect(self.refusal(try self.stages(allowed), both) == nil)
    #expect(try !SamplePipeline().load(sets: ["stages=[\(allowed)]"]).namesColumns)
    #expect(try SamplePipeline().load(sets: ["stages=[\(drop)]"]).namesColumns)
    #expect(try !SamplePipeline().load(sets: [#"stages=[{"type":"flatten"}]"#]).namesColumns)
  }

  @Test("A mask that no longer matches anything is refused, though an earlier schema had its field")
  func masks() throws {
    let mask = #"{"type":"mask","columns":["Mail"],"with":"redact"}"#
    let stages = try self.stages(mask, sets: [#"dead_letter={"payload":"none"}"#])
    let planned = self.planned([self.layout("Contact", Self.contact)])
    #expect(self.refusal(stages, planned, earlier: ["mask": ["Mail"]]) != nil)
    let drop = try self.stages(#"{"type":"drop","columns":["Mail"]}"#)
    #expect(self.refusal(drop, planned, earlier: ["drop": ["Mail"]]) == nil)
  }

  @Test("A sink's stages and column_types are checked after the pipeline's stages")
  func sinks() throws {
    let stages = try self.stages(
      #"{"type":"rename","columns":{"Email":"mail"}}"#,
      sets: [
        #"sinks=[{"type":"files","name":"f","directory":"o","stages":[{"type":"drop","columns":["Email"]}]}, {"type":"postgres","column_types":{"Contact.Phone":"text","Contact.Fax":"text","Email":"text"}}]"#
      ])
    let text = self.refusal(stages, self.planned([self.layout("Contact", Self.contact)]))
    // `Email` is the path of the field that is called mail now.
    #expect(
      text?.hasPrefix(
        "sink 'f', stage drop (stages[0]): 'Email' (nearest: mail) does not reach it: stage rename "
          + "(stages[0]) removes or renames it; sink 'postgres', column_types: 'Contact.Fax'")
        == true,
      "\(text ?? "")")
  }

  @Test("A name that an earlier stage removes is reported with that stage")
  func removed() throws {
    let stages = try self.stages(
      #"{"type":"drop","columns":["Email"]},{"type":"rename","columns":{"Email":"mail"}}"#)
    #expect(
      self.refusal(stages, self.planned([self.layout("Contact", Self.contact)]))
        == "stage rename (stages[1]): 'Email' does not reach it: stage drop (stages[0]) removes or "
        + "renames it; reorder the stages, or set \"missing\" to \"ignore\" in the stage")
  }

  @Test("A name that a channel may bring is accepted, and reported at the end if it did not occur")
  func channels() throws {
    let stages = try self.stages(#"{"type":"drop","columns":["Emial","Phone"]}"#)
    #expect(self.refusal(stages, self.planned([], unknown: ["/data/All__chn"])) == nil)
    #expect(ColumnCheck.warnings(atEndOf: stages, earlier: [:]) == [])
    try stages.show(self.layout("Contact", Self.contact))
    #expect(
      ColumnCheck.warnings(atEndOf: stages, earlier: [:]) == [
        "stage drop (stages[0]): 'Emial' (nearest: Email) is not in any schema of this run; correct "
          + "the name, or set \"missing\" to \"ignore\" in the stage"
      ])
    // In an earlier run there was one.
    #expect(ColumnCheck.warnings(atEndOf: stages, earlier: ["drop": ["Emial"]]) == [])
  }

  @Test("A field deleted in the org is reported and does not stop later runs")
  func deletedField() throws {
    let drop = #"{"type":"drop","columns":["Email"]}"#
    let first = try self.stages(drop)
    _ = try ColumnCheck(first, self.planned([self.layout("Contact", Self.contact)]))
    var document = CheckpointDocument(pipeline: "opps", org: "00D")
    document.matchedColumns = first.matched(since: [:])
    let stored = try CheckpointDocument(json: document.json).matchedColumns
    #expect(stored == ["drop": ["Email"]])

    let without = self.planned([self.layout("Contact", ["Phone"], schemaID: "s2")])
    let later = try self.stages(drop)
    let check = try ColumnCheck(later, without, earlier: stored)
    #expect(check.warnings.count == 1 && check.warnings[0].contains("'Email'"))
    #expect(later.matched(since: stored) == stored)
    // Nothing is known about another stage.
    #expect(
      self.refusal(
        try self.stages(#"{"type":"rename","columns":{"Email":"mail"}}"#), without,
        earlier: stored) != nil)
    // A name that the file no longer has is forgotten.
    let other = try self.stages(#"{"type":"drop","columns":["Phone"]}"#)
    _ = try ColumnCheck(other, without, earlier: stored)
    #expect(other.matched(since: stored) == ["drop": ["Phone"]])
  }
}
