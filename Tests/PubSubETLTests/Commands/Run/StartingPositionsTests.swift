import Pipeline
import Testing

@testable import PubSubETL

@Suite("Starting positions")
struct StartingPositionsTests {
  private typealias Position = TopicPosition
  private typealias Store = [String: TopicPosition]

  private static let files: [(name: String, start: SinkStart?)] = [("files", nil)]
  private static let filesFromNow: [(name: String, start: SinkStart?)] = [("files", .now)]

  /// A position after `ordinal` events of an epoch.
  private static func at(_ ordinal: Int64, epoch: Int = 1, holes: Int = 0) -> Position {
    var position = Position(
      beginningEpoch: epoch, after: ReplayID([UInt8(epoch), UInt8(truncatingIfNeeded: ordinal)]),
      holes: holes)
    position.nextOrdinal = ordinal
    if ordinal > 0 {
      position.lastEvent = .init(replayID: ReplayID([UInt8(ordinal & 0xff)]), eventID: [1])
    }
    return position
  }

  private static func database(
    _ name: String, _ stored: Store?, rows: Int? = nil, start: SinkStart? = nil
  ) -> StartingPositions.Keeper {
    .init(name: name, stored: stored, newestEpoch: rows, start: start)
  }

  private func start(
    topics: [String] = ["/a"], checkpoint: Store = [:], reset: Set<String> = [],
    known: [String]? = nil, files: [(name: String, start: SinkStart?)] = [],
    _ keepers: StartingPositions.Keeper..., acceptsReset: Bool = false
  ) throws -> [Store] {
    let positions = try StartingPositions(
      topics: topics, checkpoint: checkpoint, resetTopics: reset, knownSinks: known,
      checkpointed: files, keepers: keepers, acceptsReset: acceptsReset)
    return [positions.checkpoint] + positions.keepers
  }

  private func failure(_ body: () throws -> [Store]) -> RunFailure? {
    do {
      _ = try body()
      return nil
    } catch {
      return error as? RunFailure
    }
  }

  // MARK: First runs and crashes

  @Test("A first run has no positions, with files, a database or both")
  func first() throws {
    #expect(try self.start(files: Self.files) == [[:]])
    #expect(try self.start(Self.database("db", nil)) == [[:], [:]])
    #expect(try self.start(files: Self.files, Self.database("db", nil)) == [[:], [:]])
    #expect(
      try self.start(files: Self.files, Self.database("one", nil), Self.database("two", nil))
        == [[:], [:], [:]])
  }

  @Test("A run after one that ended before its first commit is a first run again")
  func nothingCommitted() throws {
    #expect(try self.start(files: Self.files, Self.database("db", [:])) == [[:], [:]])
  }

  @Test("A database whose first commit was lost starts where it started before")
  func beforeFirstCommit() throws {
    let stores = try self.start(
      checkpoint: ["/a": Self.at(20)], known: ["files", "db"], files: Self.files,
      Self.database("db", [:]))
    #expect(stores == [["/a": Self.at(20)], [:]])
  }

  @Test("Stores that a crash left at different positions keep them")
  func apart() throws {
    let stores = try self.start(
      checkpoint: ["/a": Self.at(30)], known: ["files", "one", "two"], files: Self.files,
      Self.database("one", ["/a": Self.at(20)]), Self.database("two", ["/a": Self.at(10)]))
    #expect(stores == [["/a": Self.at(30)], ["/a": Self.at(20)], ["/a": Self.at(10)]])
  }

  @Test("A topic added to the pipeline has no position, and the others keep theirs")
  func addedTopic() throws {
    let stores = try self.start(
      topics: ["/a", "/b"], checkpoint: ["/a": Self.at(30)], known: ["files", "db"],
      files: Self.files, Self.database("db", ["/a": Self.at(30)]))
    #expect(stores == [["/a": Self.at(30)], ["/a": Self.at(30)]])
  }

  // MARK: New sinks

  @Test("A new database alongside other stores has to be configured to start now")
  func newDatabase() throws {
    for known in [["files"], nil] {
      let failure = try #require(
        self.failure {
          try self.start(
            checkpoint: ["/a": Self.at(30)], known: known, files: Self.files,
            Self.database("db", nil))
        })
      #expect(failure.exitCode == .configuration)
      #expect(failure.reason == .newSink)
      #expect(failure.message.contains("'db'"))
    }
    let stores = try self.start(
      checkpoint: ["/a": Self.at(30)], known: ["files", "one"], files: Self.files,
      Self.database("one", ["/a": Self.at(20)]), Self.database("two", nil, start: .now))
    #expect(stores[2] == ["/a": Self.at(20)], "where the last of the others stands")
  }

  @Test("A new database may start like the others while they have no positions")
  func newDatabaseBesideNothing() throws {
    var nothing = Self.at(0)
    nothing.resume = nil
    let stores = try self.start(
      checkpoint: ["/a": nothing], known: ["files"], files: Self.files, Self.database("db", nil))
    #expect(stores == [["/a": nothing], ["/a": nothing]])
  }

  @Test("A new database alongside only databases starts at their positions, not at the copy's")
  func newDatabaseBesideDatabases() throws {
    let stores = try self.start(
      checkpoint: ["/a": Self.at(5)], known: ["one"],
      Self.database("one", ["/a": Self.at(40_000)]), Self.database("two", nil, start: .now))
    #expect(stores == Array(repeating: ["/a": Self.at(40_000)], count: 3))
  }

  @Test("A database added again resumes if the others can skip what it lacks, else starts now")
  func addedAgain() throws {
    let near = try self.start(
      checkpoint: ["/a": Self.at(5000)], known: ["files"], files: Self.files,
      Self.database("db", ["/a": Self.at(100)], start: .now))
    #expect(near[1] == ["/a": Self.at(100)])
    let far = try self.start(
      checkpoint: ["/a": Self.at(50_000)], known: ["files"], files: Self.files,
      Self.database("db", ["/a": Self.at(100)], start: .now))
    #expect(far[1] == ["/a": Self.at(50_000)])
    let otherEpoch = try self.start(
      checkpoint: ["/a": Self.at(150, epoch: 2)], known: ["files"], files: Self.files,
      Self.database("db", ["/a": Self.at(100)], start: .now))
    #expect(otherEpoch[1] == ["/a": Self.at(150, epoch: 2)])
  }

  @Test("A database added again without a position for a topic starts now")
  func addedAgainWithNothing() throws {
    // What a store begins with may be gone from the stream, so nothing is near enough to go back to.
    for ordinal: Int64 in [1, 5000, 50_000] {
      let stores = try self.start(
        checkpoint: ["/a": Self.at(ordinal)], known: ["files"], files: Self.files,
        Self.database("db", [:], start: .now))
      #expect(stores == [["/a": Self.at(ordinal)], ["/a": Self.at(ordinal)]])
    }
    // One topic of two: a sink begins now with all of them, or with none.
    let partly = try self.start(
      topics: ["/a", "/b"], checkpoint: ["/a": Self.at(30), "/b": Self.at(40)], known: ["files"],
      files: Self.files, Self.database("db", ["/a": Self.at(20)], start: .now))
    #expect(partly[1] == ["/a": Self.at(30), "/b": Self.at(40)])
    // The others have nothing of it either: there is nothing to begin after.
    let untouched = try self.start(
      topics: ["/a", "/b"], checkpoint: ["/a": Self.at(30), "/b": Self.at(0)], known: ["files"],
      files: Self.files, Self.database("db", ["/a": Self.at(20)], start: .now))
    #expect(untouched[1] == ["/a": Self.at(20)])
  }

  @Test("'start': 'now' changes nothing for a sink that resumes")
  func startIsIgnoredLater() throws {
    let stores = try self.start(
      checkpoint: ["/a": Self.at(50_000)], known: ["files", "db"], files: Self.filesFromNow,
      Self.database("db", ["/a": Self.at(100)], start: .now))
    #expect(stores == [["/a": Self.at(50_000)], ["/a": Self.at(100)]])
  }

  // MARK: Lost databases

  @Test("A database that has lost its position stops the run, by its rows or by the checkpoint")
  func lostDatabase() throws {
    for (known, rows) in [(["files", "db"], nil), (["files", "db"], 2), (["files"], 2)] {
      let failure = try #require(
        self.failure {
          try self.start(
            checkpoint: ["/a": Self.at(30)], known: known, files: Self.files,
            Self.database("db", nil, rows: rows, start: .now))
        })
      #expect(failure.exitCode == .data)
      #expect(failure.reason == .lostState)
      #expect(failure.message.contains("'url' or 'schema'"))
      #expect(failure.message.contains("'db'"))
      #expect(failure.message.contains("--accept-reset"))
    }
    let alone = self.failure { try self.start(Self.database("db", nil, rows: 1)) }
    #expect(alone?.reason == .lostState)
  }

  @Test("An accepted reset of a lost database starts a new epoch in all stores")
  func acceptedDatabaseLoss() throws {
    let stores = try self.start(
      topics: ["/a", "/b"], checkpoint: ["/a": Self.at(30, epoch: 3, holes: 2)],
      known: ["files", "one", "two"], files: Self.files,
      Self.database("one", ["/a": Self.at(30, epoch: 4), "/b": Self.at(7)]),
      Self.database("two", nil, rows: 6), acceptsReset: true)
    let begun: Store = [
      "/a": Position(beginningEpoch: 7, holes: 2), "/b": Position(beginningEpoch: 7),
    ]
    #expect(stores == [begun, begun, begun])
  }

  @Test("An accepted reset without a loss changes nothing")
  func needlessReset() throws {
    let stores = try self.start(
      checkpoint: ["/a": Self.at(30)], known: ["files", "db"], files: Self.files,
      Self.database("db", ["/a": Self.at(20)]), acceptsReset: true)
    #expect(stores == [["/a": Self.at(30)], ["/a": Self.at(20)]])
  }

  @Test(
    "The topics of an accepted reset are known for the journal",
    arguments: [true, false])
  func resetTopics(isLost: Bool) throws {
    let positions = try StartingPositions(
      topics: ["/a", "/b"], checkpoint: ["/a": Self.at(30)], resetTopics: isLost ? ["/a"] : [],
      knownSinks: ["files"], checkpointed: Self.files, keepers: [], acceptsReset: true)
    #expect(positions.resetTopics == (isLost ? ["/a"] : []))
  }

  // MARK: Lost state directory

  @Test("Databases need no state directory, and the last of several decides")
  func lostStateOfDatabases() throws {
    #expect(
      try self.start(Self.database("db", ["/a": Self.at(20)]))
        == [["/a": Self.at(20)], ["/a": Self.at(20)]])
    let stores = try self.start(
      topics: ["/a", "/b"], Self.database("one", ["/a": Self.at(20), "/b": Self.at(9)]),
      Self.database("two", ["/a": Self.at(10)]))
    #expect(stores[0] == ["/a": Self.at(10)], "/b may have dead letters that only one had")
  }

  @Test("Files without checkpoint and history are new alongside a database that resumes")
  func lostStateWithFiles() throws {
    let database = Self.database("db", ["/a": Self.at(20)])
    let failure = try #require(self.failure { try self.start(files: Self.files, database) })
    #expect(failure.reason == .newSink)
    #expect(failure.message.contains("'files'"))
    #expect(
      try self.start(files: Self.filesFromNow, database)
        == [["/a": Self.at(20)], ["/a": Self.at(20)]])
    let begun: Store = ["/a": Position(beginningEpoch: 2)]
    #expect(try self.start(files: Self.files, database, acceptsReset: true) == [begun, begun])
  }

  @Test("Files whose checkpoint is lost start a new epoch together with the databases")
  func lostStateOfKnownFiles() throws {
    let stores = try self.start(
      checkpoint: ["/a": Position(beginningEpoch: 1)], reset: ["/a"], files: Self.files,
      Self.database("db", ["/a": Self.at(20, epoch: 5)]), acceptsReset: true)
    let begun: Store = ["/a": Position(beginningEpoch: 6)]
    #expect(stores == [begun, begun])
  }

  @Test("A topic that lost nothing keeps its position when another starts an epoch")
  func resetOfOneTopic() throws {
    let stores = try self.start(
      topics: ["/a", "/b"], checkpoint: ["/a": Self.at(3), "/b": Self.at(40)], reset: ["/a"],
      known: ["files", "db"], files: Self.files,
      Self.database("db", ["/a": Self.at(3), "/b": Self.at(40)]), acceptsReset: true)
    let expected: Store = ["/a": Position(beginningEpoch: 2), "/b": Self.at(40)]
    #expect(stores == [expected, expected])
  }

  // MARK: Epochs that have begun

  @Test(
    "A position set by hand applies to every database",
    arguments: [
      TopicPosition(beginningEpoch: 2, start: .earliest),
      TopicPosition(beginningEpoch: 2, start: .latest),
      TopicPosition(beginningEpoch: 2, after: ReplayID([7])), TopicPosition(beginningEpoch: 2),
    ])
  func setByHand(_ position: TopicPosition) throws {
    for files in [Self.files, []] {
      let stores = try self.start(
        topics: ["/a", "/b"], checkpoint: ["/a": position, "/b": Self.at(4)],
        known: ["files", "db"], files: files,
        Self.database("db", ["/a": Self.at(20), "/b": Self.at(4)]))
      let expected = ["/a": position, "/b": Self.at(4)]
      #expect(stores == [expected, expected])
    }
  }

  @Test("An epoch that has started everywhere and is still empty is resumed")
  func begunAndEmpty() throws {
    let begun: Store = ["/a": Position(beginningEpoch: 2, holes: 1), "/b": Self.at(4)]
    let stores = try self.start(
      topics: ["/a", "/b"], checkpoint: begun, known: ["files", "db"], files: Self.files,
      Self.database("db", begun))
    #expect(stores == [begun, begun])
  }

  @Test("The copy of a database's position does not override the database")
  func olderCopy() throws {
    let stores = try self.start(
      checkpoint: ["/a": Position(beginningEpoch: 2, holes: 1)], known: ["db"],
      Self.database("db", ["/a": Self.at(500, epoch: 2, holes: 1)]))
    #expect(stores[1] == ["/a": Self.at(500, epoch: 2, holes: 1)])
    #expect(stores[0] == stores[1])
  }

  @Test("Dead letters may be ahead of the only database by one commit")
  func deadLettersAhead() throws {
    let stores = try self.start(
      checkpoint: ["/a": Self.at(30)], known: ["db"], Self.database("db", ["/a": Self.at(20)]))
    #expect(stores == [["/a": Self.at(30)], ["/a": Self.at(20)]])
  }
}
