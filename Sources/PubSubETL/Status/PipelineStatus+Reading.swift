internal import Bytes
internal import Checkpoint
import FileSink
import Glibc
import JSON
import Pipeline

extension PipelineStatus {
  /// Reads everything, takes no lock and writes nothing.
  ///
  /// - Throws: `CheckpointError`, `TopicPositionError` or `FileSinkError` for what cannot be read.
  static func read(
    _ configuration: PipelineConfiguration, maxAge: Duration?, verifies: Bool = false,
    now: Int64 = UTCTime.now()
  ) throws -> PipelineStatus {
    let paths = configuration.statePaths
    // The lock first: a run that ends in between has stored its record by then.
    let lock = RunLockState.read(paths.lock)
    let document = try FileCheckpointStore.peek(paths)
    var status = PipelineStatus(
      pipeline: configuration.name, file: configuration.file,
      stateDirectory: paths.directory, now: now, lock: lock, org: document?.org,
      savedAt: document?.savedAt,
      deadLetters: DeadLetters(directory: configuration.deadLetter.directory))
    status.lastRun = LastRun.load(paths)
    let topics = configuration.source.topics.map(\.name)
    let unused = document.map { $0.topics.keys.filter { !topics.contains($0) }.sorted() } ?? []
    for name in topics + unused {
      let position = try document?.topics[name].map { try TopicPosition(json: $0, topic: name) }
      status.topics.append(
        Topic(name: name, isUnused: unused.contains(name), position: position))
    }
    try status.readSinks(configuration, document, verifies: verifies)
    try status.readDeadLetters(document, verifies: verifies)
    status.readDatabases(configuration, document)
    status.judge(maxAge: maxAge, journalAt: Self.modificationTime(of: paths.journal))
    return status
  }

  private mutating func readSinks(
    _ configuration: PipelineConfiguration, _ document: CheckpointDocument?, verifies: Bool
  ) throws {
    let positions = Dictionary(
      self.topics.compactMap { topic in topic.position.map { (topic.name, $0) } },
      uniquingKeysWith: { first, _ in first })
    for files in configuration.fileSinks {
      let state = document?.sinks[files.name]
      var sink = Sink(
        name: files.name, directory: files.directory, isNew: document != nil && state == nil)
      if state != nil { sink.positions = positions }
      sink.openFiles = Self.openFileCount(state)
      try self.count(&sink)
      sink.output = try OutputState.read(
        directory: files.directory, pipeline: configuration.name, whenMissing: files.whenMissing,
        state: state)
      if verifies {
        sink.verification = try OutputVerification.read(
          .records, in: files.directory, pipeline: configuration.name,
          ignoringMissing: files.whenMissing == .ignore)
      }
      self.sinks.append(sink)
    }
    for (name, kept) in (document?.removedSinks ?? [:]).sorted(by: { $0.key < $1.key }) {
      guard let directory = kept["state"]?["directory"]?.string else { continue }
      var sink = Sink(name: name, directory: directory)
      sink.removedAt = kept["removed_at_ms"]?.integer
      for member in kept["positions"]?.members ?? [] {
        sink.positions[member.name] = try TopicPosition(json: member.value, topic: member.name)
      }
      sink.openFiles = Self.openFileCount(kept["state"])
      // Its directory may be gone, which is nobody's problem now.
      try? self.count(&sink)
      self.sinks.append(sink)
    }
  }

  private mutating func count(_ sink: inout Sink) throws {
    var newest = Dictionary(uniqueKeysWithValues: self.topics.map { ($0.name, "") })
    let org = self.org
    try ExportedFile.visit(.records, in: sink.directory, pipeline: self.pipeline) { file in
      guard org == nil || file.org == org else { return }
      sink.files += 1
      sink.events += file.events
      sink.bytes += file.bytes
      if let time = file.lastCommitTimestamp, let known = newest[file.topic], known < time {
        newest[file.topic] = time
      }
    }
    for index in self.topics.indices {
      guard let time = newest[self.topics[index].name], !time.isEmpty else { continue }
      self.topics[index].lastCommitTimestamp = max(
        time, self.topics[index].lastCommitTimestamp ?? "")
    }
  }

  private mutating func readDeadLetters(
    _ document: CheckpointDocument?, verifies: Bool
  ) throws {
    var letters = self.deadLetters
    let org = self.org
    try ExportedFile.visit(
      .deadLetters, in: letters.directory, pipeline: self.pipeline
    ) { file in
      guard org == nil || file.org == org else { return }
      letters.files += 1
      letters.events += file.events
    }
    letters.openFiles = Self.openFileCount(document?.deadLetters)
    if verifies {
      // Somebody deals with dead letters, and removes them.
      letters.verification = try OutputVerification.read(
        .deadLetters, in: letters.directory, pipeline: self.pipeline, ignoringMissing: true)
    }
    self.deadLetters = letters
  }

  private static func openFileCount(_ state: JSONValue?) -> Int {
    state?["files"]?.array?.count ?? 0
  }

  /// Milliseconds since 1970; nil when the file is not there.
  private static func modificationTime(of path: String) -> Int64? {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    return Int64(status.st_mtim.tv_sec) * 1000 + Int64(status.st_mtim.tv_nsec) / 1_000_000
  }
}

extension PipelineConfiguration {
  var statePaths: StatePaths {
    StatePaths(directory: self.checkpoint.directory, pipeline: self.name)
  }
}
