internal import Bytes
internal import Checkpoint
import DurableFiles
import FileSink
import Glibc
import JSON
import Pipeline

/// What `check` finds out on this machine without a connection: everything at which `run` would stop
/// before it asks a service.
enum LocalCheck {
  /// A line per thing that is wrong, with the code that `run` would end with; nothing is made.
  static func failures(_ configuration: PipelineConfiguration) -> [RunFailure] {
    var failures: [RunFailure] = []
    let state = configuration.checkpoint.directory
    if let failure = Self.stateFailure(
      configuration, Self.obstacle(to: state) ?? Self.lack(of: state))
    {
      failures.append(failure)
    }
    failures += Self.stateFileFailures(configuration.statePaths)
    failures += configuration.sinks.flatMap { ($0 as? any LocalSink)?.localFailures() ?? [] }
    // What cannot be used cannot be read either, and one reason is enough.
    if Self.obstacle(to: configuration.checkpoint.directory) != nil { return failures }
    do {
      try Self.checkPositions(configuration)
    } catch {
      failures.append(RunFailure(error))
    }
    return failures
  }

  /// - Parameter reason: why the state directory cannot be written to; nil when it can.
  static func stateFailure(
    _ configuration: PipelineConfiguration, _ reason: String?
  ) -> RunFailure? {
    let directory = configuration.checkpoint.directory
    return reason.map {
      RunFailure(
        .unwritable, "the state directory, \(directory), cannot be used: \($0)")
    }
  }

  /// Files that every run opens, if they are something else than files.
  private static func stateFileFailures(_ paths: StatePaths) -> [RunFailure] {
    [paths.lock, paths.identity].compactMap { path in
      // Runs follow a link to an identity.
      guard let type = Self.fileType(of: path), type != S_IFREG,
        path != paths.identity || type != S_IFLNK
      else { return nil }
      let kind =
        switch type {
        case S_IFDIR: "a directory"
        case S_IFLNK: "a symbolic link"
        case S_IFIFO: "a named pipe"
        default: "a special file"
        }
      return RunFailure(
        .checkpointIO, "\(path) is \(kind), not a file; remove it, and the next run makes the file")
    }
  }

  /// As in `st_mode`, of a link itself; nil if nothing is there.
  private static func fileType(of path: String) -> mode_t? {
    var status = stat()
    return lstat(path, &status) == 0 ? status.st_mode & S_IFMT : nil
  }

  /// Topics of which the checkpoint has a position; none if it cannot be read.
  static func storedTopics(_ configuration: PipelineConfiguration) -> Set<String> {
    let document = try? FileCheckpointStore.peek(configuration.statePaths)
    let resumable = document?.topics.filter { $0.value.isResumable } ?? [:]
    return Set(resumable.keys)
  }

  /// What matters only when an event cannot be decoded, or a login replaces its token.
  static func warnings(_ configuration: PipelineConfiguration) -> [String] {
    var warnings: [String] = []
    let directory = configuration.deadLetter.directory
    if let reason = Self.obstacle(to: directory) {
      warnings.append("attention: dead letters could not be stored in \(directory): \(reason)")
    }
    let identity = configuration.statePaths.identity
    if Self.fileType(of: identity) == S_IFLNK {
      warnings.append(
        "attention: \(identity) is a symbolic link, and two state directories must not have one "
          + "identity; remove it, and the next run makes a file")
    }
    if let file = configuration.metrics.textfile, let reason = Self.obstacle(toFile: file) {
      warnings.append("attention: the metrics could not be written to \(file): \(reason)")
    }
    let dropped = Self.droppedFields(configuration)
    if configuration.deadLetter.payload == .full, !dropped.isEmpty {
      warnings.append(
        "attention: dead letters hold complete events, with what the stage 'drop' removes ("
          + "\(dropped.joined(separator: ", "))); set dead_letter.payload to \"sealed\" or \"none\" "
          + "if it must not be stored")
    }
    warnings += Self.conditionalTables(configuration)
    for sink in configuration.fileSinks {
      if let note = try? Self.shortcomings(of: sink.directory) {
        warnings.append("note: sink '\(sink.name)': \(note)")
      }
    }
    return warnings + configuration.source.org.auth.localWarnings()
  }

  /// Current tables whose rows depend on conditions about values, which select changes, not records.
  private static func conditionalTables(_ configuration: PipelineConfiguration) -> [String] {
    configuration.sinks.compactMap { sink in
      let names = (configuration.stages + sink.stages).valueConditionNames
      guard sink.repairsRecords, !names.isEmpty else { return nil }
      return
        "attention: sink '\(sink.name)': a condition on \(names.joined(separator: ", ")) selects "
        + "changes, not records: rows of the current table stay when a record no longer meets it, and "
        + "most updates do not carry the field; select records in a view instead"
    }
  }

  /// Metadata columns say nothing of a record that a dead letter does not say anyway.
  private static func droppedFields(_ configuration: PipelineConfiguration) -> [String] {
    let stages = configuration.stages + configuration.sinks.flatMap(\.stages)
    let names = stages.filter { $0.value["type"]?.string == Drop.type }
      .flatMap { $0.value["columns"]?.array ?? [] }.compactMap(\.string)
    return Set(names).filter { !$0.hasPrefix("_") }.sorted()
  }

  private static func checkPositions(_ configuration: PipelineConfiguration) throws {
    let document = try FileCheckpointStore.peek(configuration.statePaths)
    if let document {
      let succession = try SinkSuccession(
        document, sinks: configuration.sinkPlaces, now: UTCTime.now())
      for sink in configuration.fileSinks {
        let state = succession.states[sink.name]
        try FileSink.check(state?.json, directory: sink.directory)
        try Self.checkDirectory(of: sink, configuration, state)
      }
      try FileSink.check(
        document.deadLetters?.json, directory: configuration.deadLetter.directory)
    }
    // A sink may hold the position; `--connect` asks it.
    guard !configuration.sinks.contains(where: \.keepsPosition) else { return }
    for topic in configuration.source.topics {
      if document?.topics[topic.name] == nil, topic.start == nil,
        configuration.source.managed == nil
      {
        throw RunFailure(
          .noStart, code: .configuration,
          "\(topic.name): no position is stored and the pipeline file has no 'start'; add "
            + "\"start\": \"earliest\" or \"latest\" to the source")
      }
    }
  }

  /// A copy of a pipeline file whose directory was changed would divide the events.
  private static func checkDirectory(
    of sink: FilesSettings, _ configuration: PipelineConfiguration, _ state: SinkState?
  ) throws {
    let output = try OutputState.read(
      directory: sink.directory, pipeline: configuration.name, whenMissing: .ignore,
      state: state?.json)
    guard output.isElsewhere, let fault = output.faults.first else { return }
    throw RunFailure(
      .otherDirectory, "sink '\(sink.name)': \(fault): \(output.remedy)")
  }

  /// What the file system of a directory lacks and a run can do without; nil if it lacks nothing.
  private static func shortcomings(of directory: String) throws(FileSystemError) -> String? {
    guard Self.obstacle(to: directory) == nil else { return nil }
    return try FileSystemProbe.shortcomings(
      ofPlanned: directory, name: ".pubsub-etl.\(getpid()).probe")
  }

  /// A call without which a run cannot write to a directory; nil if there is none.
  static func lack(of directory: String) -> String? {
    do throws(FileSystemError) {
      _ = try Self.shortcomings(of: directory)
      return nil
    } catch {
      return "\(error)"
    }
  }

  /// Why a file cannot be made, whose directory a run does not make; nil when it can.
  private static func obstacle(toFile file: String) -> String? {
    let directory = FilePath.directory(of: file)
    guard FilePath.exists(directory) else { return "the directory does not exist" }
    return Self.obstacle(to: directory)
  }

  /// Why files cannot be made in a directory, which a run would make if there is none; nil when
  /// they can.
  static func obstacle(to directory: String) -> String? {
    var place = directory
    while true {
      var status = stat()
      if stat(place, &status) == 0 {
        guard status.st_mode & S_IFMT == S_IFDIR else { return "\(place) is not a directory" }
        // What is there already is listed, too.
        let needed = place == directory ? R_OK | W_OK | X_OK : W_OK | X_OK
        guard access(place, needed) != 0 else { return nil }
        let code = errno
        return code == EACCES
          ? "this user is not allowed to write to \(place)"
          : "\(place): \(String(cString: strerror(code)))"
      }
      let code = errno
      guard code == ENOENT || code == ENOTDIR, place != "/" else {
        return "\(place): \(String(cString: strerror(code)))"
      }
      place = FilePath.directory(of: place)
    }
  }
}
