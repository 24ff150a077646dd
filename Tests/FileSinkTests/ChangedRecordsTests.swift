import DurableFiles
import Foundation
import JSON
import TestSupport
import Testing

@testable import FileSink

/// The list of changed records of which it is not known whether they belong to the files.
@Suite("Changed records of a subset") struct ChangedRecordsTests {
  private let directory: TemporaryDirectory

  init() throws { self.directory = try TemporaryDirectory() }

  private var path: String { self.directory.path + "/.opps.changed-Account" }

  private func records(_ state: JSONValue? = nil) throws -> ChangedRecords {
    let records = try ChangedRecords(path: self.path, state, on: SystemFileSystem())
    try records.recover(acceptsMissing: false)
    return records
  }

  private func commit(
    _ ids: [String], to records: ChangedRecords, at time: Int64, before ordinal: Int64
  ) throws {
    for id in ids {
      Array(id.utf8).withUnsafeBufferPointer { records.note($0, commitTime: time - 10) }
    }
    records.advance(toEpoch: 1, nextOrdinal: ordinal)
    try records.flush(at: time)
    try records.committed()
  }

  @Test("A read contains the events before the last change that every reader can see")
  func due() throws {
    let records = try self.records()
    try self.commit(["b", "a", "a"], to: records, at: 1000, before: 5)
    try self.commit(["b", "c"], to: records, at: 2000, before: 9)
    #expect(records.count == 4)
    #expect(try records.ask(at: 1999, wait: 1000, limit: 10) == [])
    #expect(records.asked == nil)
    #expect(try records.ask(at: 2000, wait: 1000, limit: 10) == ["a", "b"])
    #expect(records.asked?.nextOrdinal == 5 && records.asked?.epoch == 1)
    #expect(try records.ask(at: 3000, wait: 1000, limit: 10) == ["a", "b", "c"])
    #expect(records.asked?.nextOrdinal == 9)
    // A record that is asked for anyway needs no second call.
    #expect(try records.ask(at: 3000, wait: 1000, limit: 2) == ["a", "b"])
    #expect(try records.oldestChange() == 990)
    records.settle()
    #expect(try records.count == 1 && records.oldestChange() == 1990)
    // An answer that comes twice changes nothing.
    records.settle()
    #expect(try records.ask(at: 3000, wait: 1000, limit: 2) == ["c"])
    #expect(try records.ask(at: 3000, wait: 1000, limit: 0) == [])
    records.settle()
    #expect(records.count == 1)
  }

  @Test("The next run continues from the stored state, and what was not committed is cut off")
  func killed() throws {
    let records = try self.records()
    try self.commit(["a", "b"], to: records, at: 1000, before: 5)
    let state = try JSONValue(parsing: records.json.text(.compact))
    _ = try records.ask(at: 9000, wait: 0, limit: 1)
    records.settle()
    try self.commit(["c"], to: records, at: 2000, before: 6)
    let next = try self.records(state)
    #expect(next.count == 2)
    try self.commit(["d"], to: next, at: 3000, before: 7)
    #expect(try next.ask(at: 9000, wait: 0, limit: 10) == ["a", "b", "d"])

    try FileManager.default.removeItem(atPath: self.path + "-1")
    #expect(throws: FileSinkError.self) { try self.records(next.json) }
    let empty = try ChangedRecords(path: self.path, next.json, on: SystemFileSystem())
    try empty.recover(acceptsMissing: true)
    #expect(empty.count == 0)
    try self.commit(["e"], to: empty, at: 4000, before: 8)
    #expect(try self.records(empty.json).ask(at: 9000, wait: 0, limit: 10) == ["e"])
  }

  @Test("Entries that are done are removed from the file, whether or not a kill comes in between")
  func shortened() throws {
    let records = try self.records()
    let ids = (0..<20_000).map { "001Dp000000\($0)" }
    try self.commit(ids, to: records, at: 1000, before: 5)
    let before = records.json
    #expect(try records.ask(at: 9000, wait: 0, limit: 19_999).count == 19_999)
    records.settle()
    try records.flush(at: 2000)
    #expect(FileManager.default.fileExists(atPath: self.path + "-1"))
    // Killed before the state was durable.
    #expect(try self.records(before).count == 20_000)
    #expect(!FileManager.default.fileExists(atPath: self.path + "-2"))

    let again = try self.records(before)
    _ = try again.ask(at: 9000, wait: 0, limit: 19_999)
    again.settle()
    try self.commit(["x"], to: again, at: 2000, before: 6)
    #expect(!FileManager.default.fileExists(atPath: self.path + "-1"))
    let next = try self.records(again.json)
    #expect(try next.ask(at: 9000, wait: 0, limit: 10) == [ids.max() ?? "", "x"])
  }

  @Test("Records that a pass has not returned are read at once, at its place")
  func reviewed() throws {
    let records = try self.records()
    records.noteReview(ChangedRecords.Review(requestedAt: 700, epoch: 2, nextOrdinal: 3))
    #expect(try records.oldestChange() == Int64.min)
    let next = try self.records(JSONValue(parsing: records.json.text(.compact)))
    let review = try #require(next.review)
    #expect(review == records.review)
    try next.add([Array("a".utf8)], of: review)
    next.endReview()
    #expect(try next.ask(at: 800, wait: 500, limit: 10) == ["a"])
    #expect(next.asked?.epoch == 2 && next.asked?.nextOrdinal == 3)
    #expect(try next.oldestChange() == Int64.min)
  }

  @Test("A state that no run stores is refused")
  func damaged() throws {
    for state: JSONValue in [
      ["number": 1, "start": 56, "length": 0], ["number": 1, "start": 0, "length": 55],
      ["number": -1, "start": 0, "length": 56], ["start": 0, "length": 56], "x",
      ["number": 1, "start": 0, "length": 0, "review": ["epoch": 1]],
    ] {
      #expect(throws: FileSinkError.self) {
        try ChangedRecords(path: self.path, state, on: SystemFileSystem())
      }
    }
  }
}
