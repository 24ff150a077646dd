internal import Bytes
internal import Checkpoint
import Glibc
import JSON
import Pipeline

extension PipelineStatus {
  /// Reads everything, takes no lock and writes nothing.
  ///
  /// - Throws: `CheckpointError` or `FileSinkError` for what cannot be read.
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
      restoreCommand: configuration.command("checkpoint restore", "--from-manifest"),
      stateDirectory: paths.directory, now: now, lock: lock, org: document?.org,
      savedAt: document?.savedAt,
      deadLetters: DeadLetterStatus(directory: configuration.deadLetter.directory))
    status.lastRun = LastRun.load(paths)
    status.incidents =
      IncidentFile(paths: paths, secrets: configuration.secrets).load()?.incidents ?? []
    status.waiting = WaitingRecord.load(paths, lock: lock)
    let topics = configuration.source.topics.map(\.name)
    let unused = document.map { $0.topics.keys.filter { !topics.contains($0) }.sorted() } ?? []
    for name in topics + unused {
      status.topics.append(
        Topic(
          name: name, isUnused: unused.contains(name), position: document?.topics[name]))
    }
    try status.readSinks(
      SinkStatusReading(
        configuration: configuration, checkpoint: document,
        positions: Dictionary(
          status.topics.compactMap { topic in topic.position.map { (topic.name, $0) } },
          uniquingKeysWith: { first, _ in first }), verifies: verifies, now: now))
    status.judge(maxAge: maxAge, journalAt: Self.modificationTime(of: paths.journal))
    return status
  }

  private mutating func readSinks(_ reading: SinkStatusReading) throws {
    let configured = reading.configuration.sinks
    for sink in configured where !sink.keepsPosition {
      self.take(try sink.status(reading))
    }
    let removed = (reading.checkpoint?.removedSinks ?? [:]).sorted { $0.key < $1.key }
    for (name, kept) in removed {
      if let status = try SinkRegistry.status(removed: name, kept, reading) { self.take(status) }
    }
    self.deadLetters = try DeadLetterStatus(reading)
    for sink in configured where sink.keepsPosition {
      self.take(try sink.status(reading))
    }
    if !reading.configuration.needsCheckpoint { self.takeOwnPositions() }
  }

  private mutating func take(_ sink: SinkStatus) {
    self.sinks.append(sink)
    for index in self.topics.indices {
      guard let time = sink.newestCommitTimes[self.topics[index].name] else { continue }
      self.topics[index].lastCommitTimestamp = max(
        time, self.topics[index].lastCommitTimestamp ?? "")
    }
  }

  /// Where all sinks keep their positions the checkpoint is only a copy, which another host or a lost
  /// directory lacks.
  private mutating func takeOwnPositions() {
    let stored = self.sinks.compactMap { $0.ownPosition?.stored }
    self.org = self.org ?? stored.first?.org
    self.savedAt = (stored.map(\.committedAt) + [self.savedAt].compactMap { $0 }).max()
    for index in self.topics.indices {
      let positions = stored.compactMap { $0.positions[self.topics[index].name] }
      let behind = positions.min { ($0.epoch, $0.nextOrdinal) < ($1.epoch, $1.nextOrdinal) }
      self.topics[index].position = behind ?? self.topics[index].position
    }
  }

  /// Milliseconds since 1970; nil when the file is not there.
  static func modificationTime(of path: String) -> Int64? {
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
