import Checkpoint
import JSON
import Pipeline
import Testing

@testable import PubSubETL

@Suite("Sinks added, renamed and removed")
struct SinkSuccessionTests {
  private typealias Place = (name: String, start: SinkStart?, directory: String)
  private static let hour: Int64 = 3_600_000

  private func document(_ sinks: [String: String], ordinal: Int = 10) -> CheckpointDocument {
    CheckpointDocument(
      pipeline: "opps", org: "00D",
      topics: ["/t": self.position(ordinal)],
      sinks: sinks.mapValues { SinkState(directory: $0) })
  }

  private func position(_ ordinal: Int) -> TopicPosition {
    var position = TopicPosition(beginningEpoch: 1, after: ReplayID([0, 0xAA]))
    position.nextOrdinal = Int64(ordinal)
    return position
  }

  /// The document that a run with these sinks would store.
  private func next(
    _ document: CheckpointDocument, _ sinks: [Place], now: Int64 = 0, ordinal: Int = 10
  ) throws -> CheckpointDocument {
    let succession = try SinkSuccession(document, sinks: sinks, now: now)
    var next = self.document([:], ordinal: ordinal)
    next.sinks = succession.states
    next.removedSinks = succession.removed
    return try CheckpointDocument(json: next.json)
  }

  private func refusal(_ document: CheckpointDocument, _ sinks: [Place]) -> RunFailure? {
    do {
      _ = try SinkSuccession(document, sinks: sinks, now: 0)
      return nil
    } catch {
      return error as? RunFailure
    }
  }

  @Test("The same sinks resume with their states")
  func same() throws {
    let document = self.document(["a": "/a", "b": "/b"])
    let next = try self.next(document, [("b", nil, "/b"), ("a", nil, "/a")])
    #expect(next.sinks == document.sinks)
    #expect(next.removedSinks.isEmpty)
  }

  @Test("A new sink has to have a start")
  func added() throws {
    let document = self.document(["a": "/a"])
    let failure = try #require(self.refusal(document, [("a", nil, "/a"), ("b", nil, "/b")]))
    #expect(failure.exitCode == .configuration)
    #expect(failure.message.contains("\"start\": \"now\""))
    let next = try self.next(document, [("a", nil, "/a"), ("b", .now, "/b")])
    #expect(next.sinks["b"]?.directory == "/b")
  }

  @Test("A removed sink is kept for 72 h, and longer while it has files in progress")
  func removed() throws {
    var document = self.document(["a": "/a", "b": "/b"])
    let next = try self.next(document, [("a", nil, "/a")], now: 5)
    #expect(next.removedSinks["b"]?.removedAt == 5)
    #expect(next.removedSinks["b"]?.positions["/t"]?.nextOrdinal == 10)
    #expect(
      try self.next(next, [("a", nil, "/a")], now: 5 + 72 * Self.hour).removedSinks.count == 1)
    #expect(try self.next(next, [("a", nil, "/a")], now: 6 + 72 * Self.hour).removedSinks == [:])
    document.sinks["b"] = SinkState(["directory": "/b", "files": [["from": "x"]]])
    let succession = try SinkSuccession(document, sinks: [("a", nil, "/a")], now: 5)
    #expect(succession.leaving == ["b"])
    let open = try self.next(document, [("a", nil, "/a")], now: 5)
    #expect(
      try self.next(open, [("a", nil, "/a")], now: 99 * Self.hour).removedSinks.count == 1)
  }

  @Test("A sink that returns resumes only where it stopped")
  func back() throws {
    let both: [Place] = [("a", nil, "/a"), ("b", nil, "/b")]
    let document = self.document(["a": "/a", "b": "/b"])
    let fits = try self.next(document, [("a", nil, "/a")])
    #expect(try self.next(fits, both).sinks == document.sinks)
    #expect(try self.next(fits, both).removedSinks.isEmpty)
    let behind = try self.next(document, [("a", nil, "/a")], ordinal: 11)
    let failure = try #require(self.refusal(behind, both))
    #expect(failure.exitCode == .configuration)
    #expect(failure.message.contains("has run without it"))
    let again = try self.next(behind, [("a", nil, "/a"), ("b", .now, "/b")])
    #expect(again.sinks == document.sinks)
  }

  @Test("A renamed sink takes over the files of the old name")
  func renamed() throws {
    var document = self.document(["a": "/a"])
    document.sinks["a"] = SinkState(["directory": "/a", "files": [["from": "x"]]])
    #expect(
      self.refusal(document, [("b", nil, "/a")])?.message.contains("under a new name") == true)
    let succession = try SinkSuccession(document, sinks: [("b", .now, "/a")], now: 0)
    #expect(succession.states["b"] == document.sinks["a"])
    #expect(succession.removed.isEmpty)
    #expect(succession.leaving.isEmpty)
  }
}
