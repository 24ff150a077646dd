import Testing

@testable import FileSink

@Suite("Names of files")
struct SegmentNameTests {
  private func name(
    kind: SegmentKind = .records, pipeline: String = "opps",
    topic: String = "/data/OpportunityChangeEvent", entity: String = "Opportunity",
    day: Int64 = 20501, isExportDate: Bool = false, epoch: Int = 1, ordinal: Int64 = 42
  ) -> SegmentName {
    SegmentName(
      kind: kind, pipeline: pipeline,
      key: SegmentKey(topic: topic, entity: entity, day: day, isExportDate: isExportDate),
      epoch: epoch, ordinal: ordinal)
  }

  @Test("Names of all versions sort in the order of the stream for any epoch")
  func sorted() {
    let epochs = [1, 2, 9, 10, 11, 99, 100, 999, 1000, 99_999, 100_000, 1_000_000, 1 << 40]
    let stems = epochs.flatMap { epoch in
      [0, 9, 10, 999_999_999_999].map { self.name(epoch: epoch, ordinal: $0).stem }
    }
    #expect(stems == stems.sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) })
    // As old versions wrote them.
    #expect(self.name(epoch: 9).stem == "opps-OpportunityChangeEvent-e9-000000000042")
    #expect(self.name(epoch: 10).stem == "opps-OpportunityChangeEvent-ea10-000000000042")
  }

  @Test(
    "Epoch and first event are read from names of every version",
    arguments: [
      ("e1", 1), ("e9", 9), ("e10", 10), ("ea10", 10), ("e100000", 100_000),
      ("ee100000", 100_000), ("eq123456789012345678", 123_456_789_012_345_678),
    ] as [(String, Int64)])
  func parsed(part: String, epoch: Int64) throws {
    var name = "opps-OpportunityChangeEvent-\(part)-000000000042.ndjson.zst"
    let parsed = try #require(
      name.withUTF8 { SegmentName.Matcher(kind: .records, pipeline: "opps").parse($0) })
    #expect(parsed.epoch == epoch)
    #expect(parsed.firstOrdinal == 42)
    #expect(parsed.topicPart == 5..<27)
  }

  @Test("Every epoch is read back from its name")
  func epochs() throws {
    for epoch in (1...120).map({ $0 }) + [999, 1000, 99_999, 100_000, 999_999, 1 << 50] {
      var name = self.name(epoch: epoch).path.split(separator: "/")[2]
      let parsed = name.withUTF8 { SegmentName.Matcher(kind: .records, pipeline: "opps").parse($0) }
      #expect(parsed?.epoch == Int64(epoch))
    }
  }

  @Test("Files of a pass sort before later events, in the order of passes, jobs and rows")
  func passes() throws {
    func stem(_ ordinal: Int64, _ pass: Int, _ request: Int, row: Int) -> String {
      SegmentName(
        kind: .records, pipeline: "opps",
        key: SegmentKey(
          topic: "/data/OpportunityChangeEvent", entity: "Opportunity", day: 20501,
          isExportDate: false, pass: .init(number: pass, request: request)),
        epoch: 1, ordinal: ordinal, row: row
      ).stem
    }
    #expect(
      stem(42, 1, 1, row: 1000)
        == "opps-OpportunityChangeEvent-e1-000000000042-s1-r1-000000001000")
    let numbers = [1, 2, 9, 10, 99, 100, 12_345]
    var stems = [self.name(ordinal: 41).stem + ".ndjson.zst"]
    for number in numbers {
      for request in numbers {
        stems += [0, 9, 10, 999_999].map { stem(42, number, request, row: $0) + ".ndjson.zst" }
      }
    }
    stems += [self.name(ordinal: 42), self.name(ordinal: 43)].map { $0.stem + ".ndjson.zst" }
    #expect(stems == stems.sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) })
    let matcher = SegmentName.Matcher(kind: .records, pipeline: "opps")
    for (index, name) in stems.enumerated() {
      var name = name
      let parsed = try #require(name.withUTF8 { matcher.parse($0) })
      let pass = numbers.isEmpty || !name.contains("-s") ? nil : numbers[(index - 1) / 28]
      #expect(parsed.pass == pass.map { Int64($0) })
      #expect(parsed.firstOrdinal == (index == 0 ? 41 : index == stems.count - 1 ? 43 : 42))
      #expect(parsed.topicPart == 5..<27)
    }
  }

  @Test("A compacted file has the place of its first events, and can be compacted again")
  func compacted() throws {
    let matcher = SegmentName.Matcher(kind: .records, pipeline: "opps")
    let first = self.name().path
    let once = SegmentName.compactedPath(first: first, compaction: 1)
    #expect(
      once
        == "Opportunity/commit_date=2026-02-17/opps-OpportunityChangeEvent-e1-000000000042-s0-r1-000000000000.ndjson.zst"
    )
    var path = once
    for compaction in 2...12 {
      path = SegmentName.compactedPath(first: path, compaction: Int64(compaction))
      var base = String(path.split(separator: "/")[2])
      let parsed = try #require(base.withUTF8 { matcher.parse($0) })
      #expect(parsed.compaction == Int64(compaction))
      #expect((parsed.pass, parsed.epoch, parsed.firstOrdinal) == (nil, 1, 42))
    }
    #expect(path.hasSuffix("-e1-000000000042-s0-ra12-000000000000.ndjson.zst"))
    let neighbours = [self.name(ordinal: 41).path, path, self.name(ordinal: 43).path]
    #expect(neighbours == neighbours.sorted())
  }

  @Test("Names that almost match those of a pass count as foreign")
  func almostPasses() {
    let matcher = SegmentName.Matcher(kind: .records, pipeline: "opps")
    for end in [
      "s1-r1", "-s1-r1-", "s1-r1-0x", "sa1-r1-0", "s1-ra1-0", "s-r1-0", "s1-0", "r1-s1-0",
    ] {
      #expect(
        matcher.ownership(of: "opps-T-e1-000000000042-\(end).ndjson.zst") == .foreign, "\(end)")
    }
    #expect(matcher.ownership(of: "opps-T-e1-42-s1-r1-0.ndjson.zst") == .finished)
    #expect(matcher.ownership(of: ".opps-T-e1-42-s1-r1-0.ndjson.zst.part") == .inProgress)
    #expect(matcher.ownership(of: "other-T-e1-42-s1-r1-0.ndjson.zst") == .foreign)
  }

  @Test("A name whose epoch letter does not match its digit count is treated as foreign")
  func foreignEpochs() {
    for part in ["eb10", "a10", "ea1", "e", "ea", "xa10"] {
      #expect(
        SegmentName.Matcher(kind: .records, pipeline: "opps").ownership(
          of: "opps-T-\(part)-000000000042.ndjson.zst") == .foreign)
    }
  }

  @Test("Different topics have different names, and names of old versions are kept")
  func topics() {
    let parts = [
      ("/data/OpportunityChangeEvent", "OpportunityChangeEvent"),
      ("/data/ChangeEvents", "ChangeEvents"), ("/data/X__chn", "X__chn"),
      ("/event/Order__e", "Order__e"), ("/event/X__chn", "X__chn.event"),
      ("/event/OpportunityChangeEvent", "OpportunityChangeEvent.event"),
      ("/data/Order__e", "Order__e.data"),
    ]
    for (topic, part) in parts {
      #expect(self.name(topic: topic).stem == "opps-\(part)-e1-000000000042")
    }
  }

  @Test("Names equal the documented examples")
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
    "Values never lead out of the directory or collide",
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

  @Test("A pipeline distinguishes its own files from those of others")
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
