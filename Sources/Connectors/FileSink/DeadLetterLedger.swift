internal import Bytes
internal import DurableFiles
internal import Glibc
package import JSON
internal import Pipeline

/// The ledger of retried and dropped dead letters: `_ledger-<pipeline>.ndjson` next to their files,
/// which never change. Each line names a letter, who retried or dropped it, and when. A line with
/// `file` says that the letters of a lost file were dropped.
///
/// Written with the pipeline's lock held, so one process writes at a time; read without it.
package struct DeadLetterLedger: Sendable {
  package enum Outcome: String, Sendable {
    case retried, dropped
  }

  /// Identifies a letter. The replay ID is part of it because, after a loss of state, an epoch and
  /// its ordinals may be used again for other events.
  package struct Key: Hashable, Sendable {
    package var id: StoredDeadLetter.ID
    /// Hexadecimal.
    package var replayID: String

    package init(_ letter: StoredDeadLetter) {
      self.id = letter.id
      self.replayID = letter.letter.replayID.hex
    }

    init(id: StoredDeadLetter.ID, replayID: String) {
      self.id = id
      self.replayID = replayID
    }
  }

  package private(set) var outcomes: [Key: Outcome] = [:]

  /// The number of letters that were dropped with a lost file, by its name in the manifest. A file
  /// that is put back has its letters again.
  private(set) var lostFiles: [String: Int64] = [:]

  package func count(_ outcome: Outcome) -> Int {
    self.outcomes.values.reduce(0) { $0 + ($1 == outcome ? 1 : 0) }
  }

  package subscript(letter: StoredDeadLetter) -> Outcome? { self.outcomes[Key(letter)] }

  /// Absolute.
  package let path: String
  private let directory: String
  private let fileSystem: any FileSystem

  /// A ledger of a million letters takes 200 MB.
  private static let maxByteCount = 1 << 30

  /// Reads the ledger of a pipeline's dead letters; empty if there is none.
  ///
  /// - Parameters:
  ///   - directory: the directory of the dead letters, absolute.
  ///   - state: the checkpoint's state of the dead letters, which may have retries that are not yet
  ///     in the ledger.
  /// - Throws: `FileSinkError`: `.inconsistent` for one that is too large, `.io`.
  package init(
    directory: String, pipeline: String, state: JSONValue? = nil
  ) throws(FileSinkError) {
    try self.init(directory: directory, pipeline: pipeline, fileSystem: SystemFileSystem())
    for key in Key.retried(in: state) where self.outcomes[key] == nil {
      self.outcomes[key] = .retried
    }
  }

  init(
    directory: String, pipeline: String, fileSystem: any FileSystem
  ) throws(FileSinkError) {
    self.directory = directory
    self.path = "\(directory)/_ledger-\(SegmentName.pipelinePart(pipeline)).ndjson"
    self.fileSystem = fileSystem
    let content: [UInt8]
    do throws(FileSystemError) {
      guard let size = try fileSystem.size(of: self.path), size > 0 else { return }
      guard size <= Self.maxByteCount else {
        throw FileSystemError("read", self.path, code: EFBIG)
      }
      content = try OpenFile(self.path, [], on: fileSystem).content(byteCount: size)
    } catch {
      throw FileSinkError(error)
    }
    // A line that a crash truncated does not count: its writer writes it again.
    for line in content.split(separator: UInt8(ascii: "\n")) {
      guard let json = try? JSONValue(parsing: Array(line)),
        let outcome = json["action"]?.string.flatMap({ Outcome(rawValue: $0) })
      else { continue }
      if let file = json["file"]?.string, let count = json["letters"]?.integer,
        ExportedFile.counts.contains(count)
      {
        self.lostFiles[file] = count
      } else if let id = json["id"]?.string, let replayID = json["replay_id"]?.string {
        self.outcomes[Key(id: .init(id), replayID: replayID)] = outcome
      }
    }
  }

  /// Adds entries for letters; durable on return. Letters with an entry keep it.
  package mutating func note(_ outcome: Outcome, _ keys: [Key]) throws(FileSinkError) {
    try self.note(outcome, keys, now: UTCTime.now())
  }

  mutating func note(
    _ outcome: Outcome, _ keys: [Key], now: Int64
  ) throws(FileSinkError) {
    let new = keys.filter { self.outcomes[$0] == nil }
    try self.append(
      new.map {
        [
          JSONMember("action", .string(outcome.rawValue)),
          JSONMember("id", .string($0.id.description)),
          JSONMember("replay_id", .string($0.replayID)),
        ]
      }, now: now)
    for key in new { self.outcomes[key] = outcome }
  }

  /// Drops the letters of lost files; durable on return.
  mutating func drop(_ files: [LostLetters], now: Int64) throws(FileSinkError) {
    let files = files.filter { $0.range != nil }
    try self.append(
      files.map {
        [
          JSONMember("action", .string(Outcome.dropped.rawValue)),
          JSONMember("file", .string($0.name)), JSONMember("letters", .integer($0.count)),
        ]
      }, now: now)
    for file in files { self.lostFiles[file.name] = file.count }
  }

  private func append(_ entries: [[JSONMember]], now: Int64) throws(FileSinkError) {
    guard !entries.isEmpty else { return }
    var text = ""
    for entry in entries {
      let time = JSONMember("time", .string(UTCTime.timestamp(milliseconds: now)))
      let author = [
        JSONMember("uid", .integer(getuid())), JSONMember("pid", .integer(getpid())),
      ]
      text += JSONValue(.object([time] + entry + author)).text(.compact) + "\n"
    }
    do throws(FileSystemError) {
      // A truncated line stays on its own line.
      let isNew = try self.fileSystem.size(of: self.path) == nil
      let file = try OpenFile(self.path, [.write, .create, .append], on: self.fileSystem)
      try file.write(Array(((isNew ? "" : "\n") + text).utf8))
      try file.synchronize()
      try self.fileSystem.synchronizeDirectory(self.directory)
    } catch {
      throw FileSinkError(error)
    }
  }
}

extension DeadLetterLedger.Key {
  /// The key in the checkpoint's state of the dead letters.
  static let retriedMember = "retried"

  /// The letters whose rows the checkpoint has, and which the ledger may lack.
  static func retried(in state: JSONValue?) -> [Self] {
    (state?[Self.retriedMember]?.array ?? []).compactMap { Self(json: $0) }
  }

  var json: JSONValue { ["id": .string(self.id.description), "replay_id": .string(self.replayID)] }

  init?(json: JSONValue) {
    guard let id = json["id"]?.string, let replayID = json["replay_id"]?.string else { return nil }
    self.init(id: .init(id), replayID: replayID)
  }
}
