import DurableFiles
import Foundation
import JSON
import Pipeline
import TestSupport
import Testing

@testable import FileSink

@Suite("Dead letters whose files are not as they were written")
struct LostLettersTests {
  private let directory: TemporaryDirectory
  private let clock = TestClock()

  init() throws { self.directory = try TemporaryDirectory() }

  private var letters: String { "\(self.directory.path)/dead" }

  /// Stores letters in a file of their own, and returns the state of the next checkpoint.
  private func run(
    from state: JSONValue? = nil, letters numbers: [Int], accepts: Bool = false,
    accepted: Int = 0
  ) throws -> JSONValue {
    let dead = DeadLetterFile(
      directory: self.letters, pipeline: "opps", org: "00D", acceptsMissing: accepts,
      fileSystem: SystemFileSystem(), clock: self.clock.sinkClock)
    try dead.recover(from: state)
    #expect(dead.acceptedFaults.count == accepted)
    for number in numbers { try dead.append(ScriptedRun.letter(TestEvent(number: number))) }
    _ = try dead.flush(finish: true)
    _ = try dead.committed()
    return try dead.flush(finish: true)
  }

  private func paths() throws -> [String] {
    var paths: [String] = []
    try ExportedFile.visit(.deadLetters, in: self.letters, pipeline: "opps") {
      paths.append("\(self.letters)/\($0.name)")
    }
    return paths
  }

  private func output(_ state: JSONValue) throws -> OutputState {
    try OutputState.readDeadLetters(directory: self.letters, pipeline: "opps", state: state)
  }

  @Test("A file that cannot be read is named, and the letters of the others are lent")
  func unreadableFile() throws {
    let state = try self.run(letters: [0, 1])
    _ = try self.run(from: state, letters: [2])
    let path = try self.paths()[0]
    // A link to itself: permissions do not stop root.
    try FileManager.default.removeItem(atPath: path)
    try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: path)
    var lent: [Int64] = []
    let damaged = try DeadLetterArchive(directory: self.letters, pipeline: "opps", org: nil)
      .visit(openFiles: nil) { lent.append($0.letter.ordinal) }
    #expect(lent == [2])
    #expect(damaged.map { $0.fault.contains(path) } == [true])
  }

  @Test("Without a ledger that can be read, every letter counts as waiting")
  func unreadableLedger() throws {
    let state = try self.run(letters: [0, 1])
    try self.drop(0)
    let ledger = try #require(
      try FileManager.default.contentsOfDirectory(atPath: self.letters).first {
        $0.hasPrefix("_ledger")
      })
    try FileManager.default.removeItem(atPath: "\(self.letters)/\(ledger)")
    try FileManager.default.createDirectory(
      atPath: "\(self.letters)/\(ledger)", withIntermediateDirectories: false)
    let dead = DeadLetterFile(
      directory: self.letters, pipeline: "opps", org: "00D",
      fileSystem: SystemFileSystem(), clock: self.clock.sinkClock)
    try dead.recover(from: state)
    #expect(dead.waiting().count == 2)
  }

  private func drop(_ number: Int) throws {
    var ledger = try DeadLetterLedger(directory: self.letters, pipeline: "opps")
    let archive = DeadLetterArchive(directory: self.letters, pipeline: "opps", org: nil)
    try archive.visit(openFiles: nil) { letter in
      if letter.letter.ordinal == number { try ledger.note(.dropped, [.init(letter)]) }
    }
  }

  private func expectLost(
    _ state: JSONValue, naming place: String, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    #expect(
      try self.output(state).faults.contains { $0.contains(place) }, sourceLocation: sourceLocation)
    let error = #expect(throws: FileSinkError.self, sourceLocation: sourceLocation) {
      try self.run(from: state, letters: [])
    }
    #expect(error?.code == .lostOutput, sourceLocation: sourceLocation)
    #expect(error?.message.contains(place) == true, sourceLocation: sourceLocation)
  }

  @Test("A removed file is lost until its letters are given up")
  func removed() throws {
    var state = try self.run(letters: [1, 2])
    state = try self.run(from: state, letters: [3])
    let path = try self.paths()[0]
    try FileManager.default.removeItem(atPath: path)
    try self.expectLost(state, naming: path)
    state = try self.run(from: state, letters: [], accepts: true, accepted: 1)
    #expect(try self.output(state).faults.isEmpty)
    state = try self.run(from: state, letters: [4])
    try FileManager.default.removeItem(atPath: try self.paths()[2])
    try self.expectLost(state, naming: try self.paths()[2])
  }

  @Test("A file may be removed once its letters were retried or dropped")
  func removedLater() throws {
    var state = try self.run(letters: [1, 2])
    state = try self.run(from: state, letters: [3])
    try self.drop(1)
    try self.drop(3)
    let path = try self.paths()[0]
    let content = try #require(FileManager.default.contents(atPath: path))
    try FileManager.default.removeItem(atPath: path)
    // One of two is lost, although as many were dropped.
    try self.expectLost(state, naming: path)
    try content.write(to: URL(filePath: path))
    try self.drop(2)
    try FileManager.default.removeItem(atPath: path)
    #expect(try self.output(state).faults.isEmpty)
    state = try self.run(from: state, letters: [4])
    #expect(try self.output(state).faults.isEmpty)
  }

  @Test("Letters in intact files are read after a changed file and after a missing one")
  func others() throws {
    var state = try self.run(letters: [1])
    for number in 2...4 { state = try self.run(from: state, letters: [number]) }
    let paths = try self.paths()
    try FileManager.default.removeItem(atPath: paths[0])
    let content = try #require(FileManager.default.contents(atPath: paths[2]))
    var edited = content
    edited[content.count / 2] ^= 1
    try edited.write(to: URL(filePath: paths[2]))
    let archive = DeadLetterArchive(directory: self.letters, pipeline: "opps", org: nil)
    var ordinals: [Int64] = []
    let damaged = try archive.visit(openFiles: state) { ordinals.append($0.letter.ordinal) }
    #expect(ordinals == [2, 4])
    #expect(damaged.map(\.hasOtherSize) == [false] && damaged[0].fault.contains(paths[2]))
  }

  @Test("An accepted loss drops the letters that were waiting, until the file is put back")
  func dropped() throws {
    var state = try self.run(letters: [1, 2, 3])
    state = try self.run(from: state, letters: [4])
    try self.drop(2)
    let path = try self.paths()[0]
    let content = try #require(FileManager.default.contents(atPath: path))
    for lost in [nil, content.dropLast()] {
      try FileManager.default.removeItem(atPath: path)
      try lost?.write(to: URL(filePath: path))
      var told: [LostLetters] = []
      let isFirst = lost == nil
      let dead = DeadLetterFile(
        directory: self.letters, pipeline: "opps", org: "00D", acceptsMissing: isFirst,
        fileSystem: SystemFileSystem(), clock: self.clock.sinkClock)
      dead.onDrop = { told += $0 }
      try dead.recover(from: state)
      #expect(told.map(\.count) == (isFirst ? [2] : []))
      #expect(told.allSatisfy { $0.range?.ordinals == 1...3 && $0.waitingReplayIDs.count == 1 })
      #expect(dead.waiting().count == 1)
      #expect(try self.output(state).faults.isEmpty)
      let archive = DeadLetterArchive(directory: self.letters, pipeline: "opps", org: "00D")
      #expect(try archive.droppedFiles().map(\.count) == [2])
      try content.write(to: URL(filePath: path))
      #expect(try archive.droppedFiles() == [])
      let ledger = try DeadLetterLedger(directory: self.letters, pipeline: "opps")
      var waiting: [Int64] = []
      try archive.visit(openFiles: state) { letter in
        if ledger[letter] == nil { waiting.append(letter.letter.ordinal) }
      }
      #expect(waiting == [1, 3, 4])
    }
  }

  @Test("A failure while lost letters are dropped elsewhere leaves them lost")
  func notDropped() throws {
    struct Unavailable: Error {}
    let state = try self.run(letters: [1])
    let path = try self.paths()[0]
    try FileManager.default.removeItem(atPath: path)
    do {
      let dead = DeadLetterFile(
        directory: self.letters, pipeline: "opps", org: "00D", acceptsMissing: true)
      dead.onDrop = { _ in throw Unavailable() }
      #expect(throws: Unavailable.self) { try dead.recover(from: state) }
    }
    try self.expectLost(state, naming: path)
  }

  @Test("A lost file is noticed after the accepted loss of one with as many settled letters")
  func lostLater() throws {
    var state = try self.run(letters: [1, 2])
    state = try self.run(from: state, letters: [3, 4])
    for number in [1, 2] { try self.drop(number) }
    for number in [1, 0] {
      let path = try self.paths()[number]
      try FileManager.default.removeItem(atPath: path)
    }
    try self.expectLost(state, naming: try self.paths()[1])
    state = try self.run(from: state, letters: [5, 6], accepts: true, accepted: 1)
    try FileManager.default.removeItem(atPath: try self.paths()[2])
    try self.expectLost(state, naming: try self.paths()[2])
  }

  @Test("A directory that was moved away is lost")
  func moved() throws {
    let state = try self.run(letters: [1])
    try FileManager.default.moveItem(atPath: self.letters, toPath: "\(self.letters).old")
    try self.expectLost(state, naming: "\(self.letters)/_manifest.ndjson")
  }

  @Test("A truncated file is reported and not read")
  func changed() throws {
    let state = try self.run(letters: [1])
    let path = try self.paths()[0]
    let content = try #require(FileManager.default.contents(atPath: path))
    let archive = DeadLetterArchive(directory: self.letters, pipeline: "opps", org: nil)
    try content.dropLast().write(to: URL(filePath: path))
    var count = 0
    #expect(try archive.visit(openFiles: state) { _ in count += 1 }.map(\.hasOtherSize) == [true])
    #expect(count == 0)
    try self.expectLost(state, naming: path)
  }

  @Test("A letter that was edited in a file of the recorded size is not read")
  func edited() throws {
    let state = try self.run(letters: [1])
    let path = try self.paths()[0]
    let content = try #require(FileManager.default.contents(atPath: path))
    let line = try Decompression.lines(of: Array(content))[0]
    let name = try #require(path.split(separator: "/").last)
    let directory = String(path.dropLast(name.count + 1))
    try ViewFiles.finish(
      line.replacing("\"time\":\"2026", with: "\"time\":\"2020") + "\n", as: String(name),
      in: directory)
    let size = try #require(FileManager.default.contents(atPath: path)).count
    let manifest = "\(self.letters)/_manifest.ndjson"
    try String(contentsOfFile: manifest, encoding: .utf8)
      .replacing("\"bytes\":\(content.count),", with: "\"bytes\":\(size),")
      .write(toFile: manifest, atomically: true, encoding: .utf8)
    let archive = DeadLetterArchive(directory: self.letters, pipeline: "opps", org: nil)
    let damaged = try archive.visit(openFiles: state) { _ in Issue.record("it was read") }
    #expect(damaged.count == 1 && damaged[0].fault.contains("\(path) has the SHA-256"))
    // Such a letter is waiting, whatever time it says.
    let dead = DeadLetterFile(directory: self.letters, pipeline: "opps", org: "00D")
    try dead.recover(from: state)
    #expect(
      dead.waiting().count(
        of: ["/data/OpportunityChangeEvent"], lackedBy: "files", since: .max) == 1)
  }
}
