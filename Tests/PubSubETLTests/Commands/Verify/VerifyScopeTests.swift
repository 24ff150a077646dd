import JSON
import Pipeline
import Testing

@testable import PubSubETL

@Suite("Stages in front of a comparison") struct VerifyScopeTests {
  private static let first = MetadataSlot.count
  private static let layout = RecordLayout(
    topic: "/data/AccountChangeEvent", schemaID: "s", entity: "Account", family: .changeEvent,
    slotCount: first + 4, fieldOrder: [first, first + 1, first + 2, first + 3],
    columns: [
      Column(
        name: "_commit_user", path: ["_commit_user"],
        content: .slot(MetadataSlot.commitUser, .string), isMetadata: true)
    ]
      + ["Name", "Rating", "Industry", "LastModifiedDate"].enumerated().map {
        Column(name: $1, path: [$1], content: .slot(first + $0, .string))
      })

  private static func scope(
    _ stages: String, unread: Set<String> = []
  ) throws -> VerifyScope {
    let sample = try SamplePipeline()
    let configuration = try sample.load(
      SamplePipeline.minimal, sets: ["stages=\(stages)", "dead_letter.payload=none"])
    let chains = RunStages(configuration, org: "00D")
    return try VerifyScope(
      Self.layout, unread: unread, through: chains.pipeline, StageChain([], sink: "files"))
  }

  private static func listed(_ scope: VerifyScope) -> [String] {
    Self.layout.columns.filter { !$0.isMetadata && scope.isListed($0) }.map(\.name)
  }

  @Test("The fields by which stages decide are read even if values are not compared")
  func deciding() throws {
    #expect(Self.listed(try Self.scope("[]")) == ["LastModifiedDate"])
    let filter = try Self.scope(#"[{"type":"filter","where":"Rating == 'Hot'"}]"#)
    #expect(Self.listed(filter) == ["Rating", "LastModifiedDate"])
    #expect(filter.hasChangeField && filter.undecidable.isEmpty)
    // A computed column may depend on every field.
    let set = try Self.scope(
      #"[{"type":"set","columns":{"Big":"Name == 'x'"}},{"type":"filter","where":"Big"}]"#)
    #expect(Self.listed(set) == ["Name", "Rating", "Industry", "LastModifiedDate"])
  }

  @Test("A condition on a field that cannot be read is undecidable, and so is one on the change")
  func undecidable() throws {
    let filter = #"[{"type":"filter","where":"Rating == 'Hot'"}]"#
    let hidden = try Self.scope(filter, unread: ["Rating"])
    #expect(hidden.undecidable.map(\.field) == ["stage filter (stages[0])"])
    #expect(hidden.undecidable.first?.reason == "it needs Rating, which cannot be read")
    let change = try Self.scope(
      #"[{"type":"filter","where":"_commit_user == '005'","snapshot":false}]"#)
    #expect(change.undecidable.count == 1)
  }

  @Test(
    "SystemModstamp counts if the copy has no LastModifiedDate as the org has it",
    arguments: [
      #"[{"type":"drop","columns":["LastModifiedDate"]}]"#,
      #"[{"type":"mask","columns":["LastModifiedDate"],"with":"redact"}]"#,
    ])
  func changeField(stages: String) throws {
    #expect(try !Self.scope(stages).hasChangeField)
    #expect(try !Self.scope("[]", unread: ["LastModifiedDate"]).hasChangeField)
  }
}
