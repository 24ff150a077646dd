internal import Bytes
package import Clocks
internal import DurableFiles
internal import Glibc
package import JSON

/// `<pipeline>.journal.ndjson`: a line for each change of positions by hand, in the order in which
/// they were made. Lines are never changed.
package enum CheckpointJournal {
  /// Appends a line, durable on return. To be called with the lock held, before the change.
  ///
  /// - Parameters:
  ///   - command: the command that the user gave, without secrets.
  ///   - clock: of the line's time.
  ///   - old, new: the value that is replaced and the one that replaces it.
  package static func append(
    _ paths: StatePaths, command: String, topic: String?, old: JSONValue, new: JSONValue,
    clock: ProcessClock = ProcessClock()
  ) throws(CheckpointError) {
    try Self.append(
      paths, command: command, topic: topic, old: old, new: new, now: clock.wallTime,
      on: SystemFileSystem())
  }

  static func append(
    _ paths: StatePaths, command: String, topic: String?, old: JSONValue, new: JSONValue,
    now: Int64, on fileSystem: any FileSystem
  ) throws(CheckpointError) {
    let line: JSONValue = [
      "time": .string(UTCTime.timestamp(milliseconds: now)), "uid": .integer(getuid()),
      "pid": .integer(getpid()), "command": .string(command),
      "topic": topic.map { .string($0) } ?? nil, "old": old, "new": new,
    ]
    do throws(FileSystemError) {
      let size = try fileSystem.size(of: paths.journal) ?? 0
      let file = try OpenFile(paths.journal, [.write, .create, .append], on: fileSystem)
      var last: [UInt8] = [UInt8(ascii: "\n")]
      if size > 0 {
        // A truncated line stays on a line of its own.
        var failure: FileSystemError?
        last.withUnsafeMutableBytes { bytes in
          do throws(FileSystemError) {
            _ = try file.read(into: bytes, at: size - 1)
          } catch {
            failure = error
          }
        }
        if let failure { throw failure }
      }
      let lead = last == [UInt8(ascii: "\n")] ? "" : "\n"
      try file.write(Array((lead + line.text(.compact) + "\n").utf8))
      try file.synchronize()
      try fileSystem.synchronizeDirectory(paths.directory)
    } catch {
      throw CheckpointError("cannot write the journal of pipeline '\(paths.pipeline)'", error)
    }
  }
}
