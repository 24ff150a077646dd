import Testing

@testable import FileSink

@Suite("Names of files")
struct SegmentNameTests {
  private func name(
    kind: SegmentKind = .records, pipeline: String = "opps",
    topic: String = "/data/OpportunityChangeEvent", entity: String = "Opportunity",
    day: Int64 = 20501, isExportDate: Bool = false, ordinal: Int64 = 42
  ) -> SegmentName {
    SegmentName(
      kind: kind, pipeline: pipeline,
      key: SegmentKey(topic: topic, entity: entity, day: day, isExportDate: isExportDate),
      epoch: 1, ordinal: ordinal)
  }

  @Test("As documented")
  func documented() {
    let name = self.name()
    #expect(
      name.path
        == "Opportunity/commit_date=2026-02-17/opps-OpportunityChangeEvent-e1-000000000042.ndjson.zst"
    )
    #expect(
      name.partPath
        == "Opportunity/commit_date=2026-02-17/.opps-OpportunityChangeEvent-e1-000000000042.ndjson.zst.part"
    )
    #expect(self.name(isExportDate: true).directory == "Opportunity/export_date=2026-02-17")
    #expect(
      self.name(kind: .deadLetters, isExportDate: true).path
        == "export_date=2026-02-17/opps-OpportunityChangeEvent-e1-000000000042.dead.ndjson.zst")
    #expect(self.name(ordinal: 1_234_567_890_123).stem.hasSuffix("-e1-1234567890123"))
  }

  @Test(
    "Values never lead out of the directory nor collide",
    arguments: [
      "../../etc", "a/b", "", ".", "..", "a\0b", "ä", "_x", String(repeating: "x", count: 300),
    ])
  func hostile(value: String) {
    let entity = self.name(entity: value).path.split(separator: "/")
    #expect(entity.count == 3)
    #expect(!entity[0].hasPrefix(".") && !entity[0].hasPrefix("_") && entity[0].utf8.count < 100)
    #expect(SegmentName.sanitized(value) != SegmentName.sanitized(value + "/"))
    let topic = self.name(topic: "/data/" + value)
    #expect(topic.path.split(separator: "/").count == 3)
    #expect(
      SegmentName.Matcher(kind: .records, pipeline: "opps").ownership(
        of: topic.stem + SegmentKind.records.suffix) == .finished)
  }

  @Test("A pipeline knows its own files from others'")
  func ownership() {
    for pipeline in ["opps", "opps-2", "a.b-c", "ä ö"] {
      let name = self.name(pipeline: pipeline)
      let final = String(name.path.split(separator: "/")[2])
      let part = String(name.partPath.split(separator: "/")[2])
      func ownership(_ name: String, _ other: String = pipeline) -> SegmentName.Ownership {
        SegmentName.Matcher(kind: .records, pipeline: other).ownership(of: name)
      }
      #expect(ownership(final) == .finished)
      #expect(ownership(part) == .inProgress)
      #expect(ownership(final, "other") == .foreign)
      #expect(ownership(final, pipeline + "-2") == .foreign)
      #expect(
        SegmentName.Matcher(kind: .deadLetters, pipeline: pipeline).ownership(of: final) == .foreign
      )
      let dead = String(
        self.name(kind: .deadLetters, pipeline: pipeline).path.split(separator: "/")[1])
      #expect(ownership(dead) == .foreign)
      #expect(
        SegmentName.Matcher(kind: .deadLetters, pipeline: pipeline).ownership(of: dead) == .finished
      )
    }
    for name in [
      "_columns.json", "x.ndjson.zst", "opps-T-e1-12x.ndjson.zst", "opps-T-1-12.ndjson.zst", "",
    ] {
      #expect(SegmentName.Matcher(kind: .records, pipeline: "opps").ownership(of: name) == .foreign)
    }
  }
}
