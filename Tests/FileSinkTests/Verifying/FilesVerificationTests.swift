import Bytes
import Foundation
import JSON
import Pipeline
import TestSupport
import Testing

@testable import FileSink

/// Files compared with records that were read.
@Suite("Verification of files") struct FilesVerificationTests {
  private let directory = try! TemporaryDirectory()  // A machine without /tmp runs no tests.

  /// Milliseconds since 1970: of the lines and the stamps, and what is too young to be judged.
  private static let (old, horizon): (Int64, Int64) = (1_771_300_000_000, 1_771_300_100_000)

  private static let layout = RecordLayout(
    topic: RandomStream.topic, schemaID: "s", entity: RandomStream.entity, family: .changeEvent,
    slotCount: MetadataSlot.count + 1, fieldOrder: [MetadataSlot.count],
    columns: Column.changeMetadata(topic: RandomStream.topic, schemaID: "s")
      + [Column("A", MetadataSlot.count, .string)])

  private static func line(
    _ id: String, _ type: String, _ value: String?, time: Int64 = old
  ) -> String {
    let isRead = type == "SNAPSHOT"
    let stamp = UTCTime.timestamp(milliseconds: time)
    var line: [JSONMember] = [
      JSONMember("_kind", isRead ? "snapshot" : "change"),
      JSONMember("_change_type", .string(type)), JSONMember("_record_id", .string(id)),
      JSONMember(isRead ? "_system_modstamp" : "_commit_timestamp", .string(stamp)),
    ]
    if let value { line.append(JSONMember("A", .string(value))) }
    return JSONValue(.object(line)).text(.compact)
  }

  private func write(_ reads: [String], _ changes: [String]) throws {
    let stream = RandomStream(seed: 0)
    var manifest = try stream.writeFile(
      of: reads, to: self.directory.path, first: (1, 0),
      pass: SegmentKey.Pass(number: 1, request: 1))
    if !changes.isEmpty {
      manifest += try stream.writeFile(of: changes, to: self.directory.path, first: (1, 0))
    }
    try manifest.write(
      toFile: "\(self.directory.path)/_manifest.ndjson", atomically: false, encoding: .utf8)
  }

  private func verification(comparesStamps: Bool = false) throws -> FilesVerification {
    try FilesVerification(
      of: FilesVerification.Subject(
        directory: self.directory.path, pipeline: RandomStream.pipeline, topic: RandomStream.topic,
        org: "00D", int64AsStrings: false, state: { nil }),
      layout: Self.layout, horizon: Self.horizon, comparesStamps: comparesStamps,
      scratch: ScratchFiles(directory: self.directory.path + "/state"))
  }

  /// Records as they were read; a value of nil was not read.
  private static func batch(_ records: [(id: String, value: String?)]) -> RecordBatch {
    let batch = RecordBatch(layout: Self.layout)
    batch.readAt = .now
    for (id, value) in records {
      var cells: [Int: TestCell] = [
        MetadataSlot.eventID: .text("snapshot:1:\(id)"), MetadataSlot.recordID: .text(id),
        MetadataSlot.kind: .integer(Int64(EventKind.snapshot.rawValue)),
        MetadataSlot.entity: .text(RandomStream.entity), MetadataSlot.changeType: .text("SNAPSHOT"),
      ]
      cells[MetadataSlot.count] = value.map { .text($0) }
      let row = batch.addRow(cells)
      batch.events.append(
        RecordBatch.Event(
          firstRow: row, rowCount: 1, replayID: RecordBatch.Range(offset: 0, count: 0),
          eventID: RecordBatch.Range(cell: batch.row(row).cells[MetadataSlot.eventID]),
          commitTimestamp: Self.old, kind: .snapshot))
    }
    return batch
  }

  private static func omitted(_ kind: OmittedRecord.Kind, _ id: String?) -> OmittedRecord {
    OmittedRecord(kind, recordID: id, stamp: Self.old, reason: "stage cast: no")
  }

  @Test("Every record ends in one class with its reason, and the classes add up")
  func classes() throws {
    try self.write(
      ["equal", "differing", "outside", "refused", "extra"].map { Self.line($0, "SNAPSHOT", "v") },
      [])
    let verification = try self.verification()
    try verification.take(
      Self.batch([("equal", "v"), ("equal", "v"), ("differing", "other"), ("missing", "v")]),
      omitted: [
        Self.omitted(.leftOut, "outside"), Self.omitted(.leftOut, "left_out"),
        Self.omitted(.refused, "refused"), Self.omitted(.refused, "refused_missing"),
        Self.omitted(.unreadable, nil),
      ])
    try verification.finishPass()
    let asked = try verification.candidates(beginsRound: true, limit: 9)
    #expect(asked == ["differing", "extra", "missing", "outside"])
    try verification.lookAgain()
    try verification.takeAgain(
      Self.batch([("differing", "other"), ("missing", "v")]), missing: ["extra"],
      omitted: [Self.omitted(.leftOut, "outside")])
    #expect(try verification.candidates(beginsRound: false, limit: 9).isEmpty)
    let findings = try verification.findings(idLimit: 9)
    #expect(
      findings.records == [
        "differing": ["differing"], "missing": ["missing"], "not_found": ["extra"],
        "outside": ["outside"],
      ])
    #expect(findings.equal == 1 && findings.leftOut == 1 && findings.refused == 2)
    #expect(findings.unreadable == 1 && findings.lacking == 2)
    #expect(findings.total == 9 && findings.uncounted == 0 && findings.received == 9)
    #expect(findings.omissions.all.map(\.count) == [2, 1])
    #expect(findings.verdict == .drift)
  }

  @Test("A record purged after the files were read is not drift once its deletion is in the files")
  func purged() throws {
    let reads = ["kept", "purged"].map { Self.line($0, "SNAPSHOT", "v") }
    try self.write(reads, [])
    let verification = try self.verification()
    // A run exports the deletion while the org is read.
    try self.write(reads, [Self.line("purged", "DELETE", nil)])
    try verification.take(Self.batch([("kept", "v")]))
    try verification.finishPass()
    #expect(try verification.candidates(beginsRound: true, limit: 9) == ["purged"])
    try verification.lookAgain()
    try verification.takeAgain(Self.batch([]), missing: ["purged"])
    #expect(try verification.candidates(beginsRound: false, limit: 9).isEmpty)
    let findings = try verification.findings(idLimit: 9)
    #expect(findings.verdict == .equal)
    #expect(findings.gone == 1 && findings.total == 2 && findings.uncounted == 0)
  }

  @Test("A change that the files lack shows in SystemModstamp, and equal values settle it")
  func stamps() throws {
    try self.write(
      [
        Self.line("late", "SNAPSHOT", "v", time: Self.old - 60_000),
        Self.line("same", "SNAPSHOT", "v", time: Self.old - 4000),
        Self.line("touched", "SNAPSHOT", "v", time: Self.old - 60_000),
      ], [])
    let verification = try self.verification(comparesStamps: true)
    try verification.take(Self.batch([("late", nil), ("same", nil), ("touched", nil)]))
    try verification.finishPass()
    #expect(try Set(verification.sample(9)) == ["same"])
    #expect(try verification.candidates(beginsRound: true, limit: 9) == ["late", "touched"])
    try verification.lookAgain()
    try verification.takeAgain(Self.batch([("late", "other"), ("touched", "v")]), missing: [])
    #expect(try verification.candidates(beginsRound: false, limit: 9).isEmpty)
    let findings = try verification.findings(idLimit: 9)
    #expect(findings.records == ["differing": ["late"]])
    #expect(findings.equal == 2 && findings.uncounted == 0)
  }
}
