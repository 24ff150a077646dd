import ArgumentParser
import Avro
import Checkpoint
import DurableFiles
import FileSink
import JSON
import Logging
import Pipeline
import SchemaStore
import Testing

@testable import PubSubETL

/// With a token and stored schemas, a retry needs neither the login nor the service.
@Suite("Retries of dead letters")
struct DeadLetterRetryTests {
  private static let schema = """
    { "type": "record", "name": "Order__e", "fields": [
      { "name": "CreatedDate", "type": "long" }, { "name": "Number__c", "type": "string" } ] }
    """
  private static let topic = "/event/Order__e"

  private let state: StateSample
  private let schemaID: String

  init() throws {
    self.state = try StateSample(
      SamplePipeline.minimal.replacing("/data/OpportunityChangeEvent", with: Self.topic)
        .replacing(
          #""type": "client_credentials", "login_url""#, with: #""type": "token", "instance_url""#
        )
        .replacing(
          #""client_id": "id", "client_secret": "${SECRET}""#,
          with: #""access_token": "\#(StateSample.org)!token""#
        )
        .replacing(
          #"{ "type": "files", "directory": "out" }"#,
          with:
            #"{ "type": "files", "name": "a", "directory": "a" }, { "type": "files", "name": "b", "directory": "b" }"#
        ))
    let schema = try Schema(parsing: Array(Self.schema.utf8))
    self.schemaID = try #require(schema.serviceID)
    try SystemFileSystem().makeDirectories(self.state.paths.directory)
    let cache = SchemaCache(directory: self.state.paths.schemas, org: StateSample.org)
    cache.fetched(self.schemaID, json: Self.schema, schema: schema)
  }

  private var configuration: PipelineConfiguration { self.state.configuration }

  /// - Parameter number: the event's ordinal, and the value of its field; nil for a payload that the
  ///   schema does not fit.
  private func letter(
    _ ordinal: Int64, isDecodable: Bool = true, refusedBy sink: String? = nil
  ) -> DeadLetter {
    // A date of 0, and a text of one digit.
    let payload: [UInt8] = [0, 2, UInt8(ascii: "0") + UInt8(ordinal)]
    return DeadLetter(
      topic: Self.topic, replayID: ReplayID([UInt8(ordinal)]), eventID: "e\(ordinal)",
      schemaID: self.schemaID, payload: isDecodable ? payload : [0], reason: "odd",
      refusal: sink.map { DeadLetter.Refusal(sink: $0) }, epoch: 1, ordinal: ordinal)
  }

  /// Stores letters, and the checkpoint of the run that ends with them.
  private func store(
    _ letters: [DeadLetter], sinks: [String] = ["a", "b"], org: String = StateSample.org
  ) throws {
    let dead = DeadLetterFile(
      directory: self.configuration.deadLetter.directory, pipeline: "opps", org: org)
    try dead.recover(from: nil)
    for letter in letters { try dead.append(letter) }
    _ = try dead.flush(finish: true)
    _ = try dead.committed()
    let position = try TopicPosition(
      json: self.state.position(ordinal: 9, confirmedAt: 0), topic: Self.topic)
    let store = try FileCheckpointStore(directory: self.state.paths.directory, pipeline: "opps")
    try store.save(
      CheckpointDocument(
        pipeline: "opps", org: org, topics: [Self.topic: position],
        sinks: Dictionary(uniqueKeysWithValues: sinks.map { ($0, SinkState(["files": []])) }),
        deadLetters: SinkState(try dead.flush(finish: true))))
  }

  private func retry() throws -> DeadLetterRetry {
    DeadLetterRetry(
      self.configuration, options: try RunOptions.parse([]),
      acceptsUnsealed: false, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
  }

  private func retry(_ ids: Int64...) async throws -> DeadLetterRetry.Result {
    try await self.retry().execute(ids.map { Self.id($0) }, all: ids.isEmpty)
  }

  private static func id(_ ordinal: Int64) -> String { "Order__e-e1-\(ordinal)" }

  private func failure(_ ids: Int64...) async -> RunFailure? {
    do {
      _ = try await self.retry().execute(ids.map { Self.id($0) }, all: ids.isEmpty)
      return nil
    } catch {
      return RunFailure(error)
    }
  }

  /// The first ordinals of the files that a sink got from letters.
  private func redriven(_ sink: String) throws -> [Int64] {
    var ordinals: [Int64] = []
    try ExportedFile.visit(
      .redriven, in: "\(self.state.sample.base)/\(sink)", pipeline: "opps"
    ) { file in
      #expect(file.events == 1 || file.lastOrdinal > file.firstOrdinal)
      ordinals += [file.firstOrdinal, file.lastOrdinal].prefix(file.events == 1 ? 1 : 2)
    }
    return ordinals.sorted()
  }

  private func waiting() throws -> [Int64] {
    var ordinals: [Int64] = []
    try DeadLetterBook(self.configuration).visit(DeadLetterSelection()) { letter, _ in
      ordinals.append(letter.letter.ordinal)
    }
    return ordinals
  }

  @Test("The chosen letters come to the sinks that lack them, once")
  func chosen() async throws {
    try self.store([self.letter(3), self.letter(4, refusedBy: "b"), self.letter(6)])
    #expect(try await self.retry(3, 4).retried.map(\.description) == [Self.id(3), Self.id(4)])
    #expect(try self.redriven("a") == [3])
    #expect(try self.redriven("b") == [3, 4])
    #expect(try self.waiting() == [6])
    #expect(await self.failure(3)?.reason == .unknownLetter)
    #expect(try await self.retry().retried.map(\.description) == [Self.id(6)])
    let again = try await self.retry()
    #expect(again.retried.isEmpty && again.failed.isEmpty)
    #expect(try self.redriven("a") == [3, 6])
    // The position is the one of the run.
    let document = try FileCheckpointStore.peek(self.state.paths)
    #expect(document?.topics[Self.topic]?.nextOrdinal == 9)
  }

  @Test("A letter that fails again stays, and the others are retried")
  func failing() async throws {
    try self.store([
      self.letter(1, isDecodable: false), self.letter(2, refusedBy: "c"), self.letter(5),
      self.letter(9),
    ])
    let result = try await self.retry()
    #expect(result.retried.map(\.description) == [Self.id(5)])
    let reasons = Dictionary(
      uniqueKeysWithValues: result.failed.map { ($0.id.description, $0.reason) })
    #expect(reasons[Self.id(1)]?.contains("could not be decoded") == true)
    #expect(reasons[Self.id(2)]?.contains("sink 'c'") == true)
    #expect(reasons[Self.id(9)]?.contains("the checkpoint does not know its place") == true)
    #expect(try self.waiting() == [1, 2, 9])
  }

  @Test("A dry run finds what a retry would do, and stores nothing")
  func examined() async throws {
    try self.store([self.letter(1, isDecodable: false), self.letter(2)])
    let result = try await self.retry().examine([], all: true)
    #expect(result.retried.map(\.description) == [Self.id(2)])
    #expect(result.failed.map(\.id.description) == [Self.id(1)])
    #expect(result.loss == nil)
    #expect(try self.waiting() == [1, 2])
    #expect(try self.redriven("a") == [])
  }

  @Test("With a lost file, nothing is retried, and a dry run examines the other letters")
  func lost() async throws {
    try self.store([self.letter(1), self.letter(2)])
    var path = ""
    let directory = self.configuration.deadLetter.directory
    try ExportedFile.visit(.deadLetters, in: directory, pipeline: "opps") {
      path = "\(directory)/\($0.name)"
    }
    let content = try self.read(path)
    for damage in [nil, Array(content.dropLast()), content.map { $0 ^ 1 }] {
      if try SystemFileSystem().size(of: path) != nil { try SystemFileSystem().remove(path) }
      if let damage { try self.write(damage, to: path) }
      let failure = await self.failure()
      #expect(failure?.reason == .lostOutput && failure?.exitCode == .data)
      #expect(failure?.message.contains(path) == true)
      #expect(failure?.message.contains("put back a copy of the file; or") == true)
      #expect(await self.failure(2)?.reason == .lostOutput)
      let result = try await self.retry().examine([], all: true)
      #expect(result.retried.isEmpty && result.loss?.reason == .lostOutput)
    }
    try SystemFileSystem().remove("\(directory)/_manifest.ndjson")
    let failure = await self.failure()
    #expect(failure?.reason == .lostOutput)
    #expect(failure?.message.contains("_manifest.ndjson is missing") == true)
    #expect(try self.redriven("a") == [])
  }

  private func read(_ path: String) throws -> [UInt8] {
    let size = try #require(try SystemFileSystem().size(of: path))
    return try OpenFile(path, [], on: SystemFileSystem()).content(byteCount: size)
  }

  private func write(_ bytes: [UInt8], to path: String) throws {
    try OpenFile(path, [.write, .create], on: SystemFileSystem()).write(bytes)
  }

  @Test("Without its ledger, no letter is retried a second time")
  func lostLedger() async throws {
    try self.store([self.letter(1), self.letter(2)])
    _ = try await self.retry(1)
    let ledger = try DeadLetterBook(self.configuration).ledger.path
    try SystemFileSystem().remove(ledger)
    let failure = await self.failure()
    #expect(failure?.reason == .lostState && failure?.message.contains(ledger) == true)
    #expect(try self.redriven("a") == [1])
  }

  @Test("A checkpoint of other sinks, of another org, or none is refused")
  func otherCheckpoint() async throws {
    #expect(await self.failure()?.reason == .noCheckpoint)
    try self.store([self.letter(1)], sinks: ["a"])
    #expect(await self.failure()?.reason == .otherSinks)
    try self.store([], org: "00DDp00002GtEJXMA3")
    #expect(try self.waiting() == [])
  }
}
