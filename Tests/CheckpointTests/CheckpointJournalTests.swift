import DurableFiles
import Glibc
import JSON
import TestSupport
import Testing

@testable import Checkpoint

@Suite("Journal of changes by hand")
struct CheckpointJournalTests {
  @Test("A symbolic link in place of the journal is not followed")
  func link() throws {
    let directory = try TemporaryDirectory()
    let paths = StatePaths(directory: directory.path, pipeline: "opps")
    let victim = "\(directory.path)/victim"
    #expect(symlink(victim, paths.journal) == 0)
    let error = #expect(throws: CheckpointError.self) {
      try CheckpointJournal.append(paths, command: "a", topic: nil, old: nil, new: 2)
    }
    #expect(error?.message.contains("symbolic link") == true)
    #expect(try SystemFileSystem().size(of: victim) == nil)
  }

  @Test("Lines are appended, and none is joined to a line that a crash truncated")
  func append() throws {
    let directory = try TemporaryDirectory()
    let paths = StatePaths(directory: directory.path, pipeline: "opps")
    try CheckpointJournal.append(paths, command: "a", topic: "/t", old: 1, new: 2)
    let file = try #require(fopen(paths.journal, "a"))
    fputs("{\"torn", file)
    fclose(file)
    try CheckpointJournal.append(paths, command: "b", topic: nil, old: nil, new: 3)
    try CheckpointJournal.append(paths, command: "c", topic: nil, old: nil, new: 4)
    let size = try #require(try SystemFileSystem().size(of: paths.journal))
    let bytes = try OpenFile(paths.journal, [], on: SystemFileSystem()).content(byteCount: size)
    let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
    #expect(lines.count == 4)
    #expect(lines[1] == "{\"torn")
    let commands = lines.map { try? JSONValue(parsing: Array($0.utf8))["command"]?.string }
    #expect(commands == ["a", nil, "b", "c"])
  }
}
