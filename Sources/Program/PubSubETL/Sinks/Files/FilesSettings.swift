import Checkpoint
import Clocks
import EventLoop
import FileSink
import JSON
import Logging

/// `{"type": "files"}`: zstd-compressed NDJSON files.
struct FilesSettings: ConfiguredSink, Equatable {
  enum Int64Form: String, CaseIterable, Sendable {
    case number
    /// Every `long` column as text, for readers whose numbers are doubles.
    case string
  }

  static let type = "files"

  var common = SinkKeys(name: FilesSettings.type)
  /// Absolute.
  var directory = ""
  var compressionLevel = 1
  var int64 = Int64Form.number
  var rotateMinBytes: Int?
  var rotateBytes = 128 << 20
  var rotateEvents = 1_000_000
  var rotateAge = Duration.seconds(3600)
  var rotateIdle = Duration.seconds(300)
  var rotateOpenFiles = 250
  var whenMissing = FileSinkConfiguration.MissingPolicy.fail
  private var fileMode: UInt32?
  private var groupID: UInt32?

  static let schemaDescription = "Writes zstd-compressed NDJSON files."
  static let int64Text =
    "string: long columns as text, for readers whose numbers are doubles. Numbers inside "
    + "arrays, maps and JSON columns stay numbers."

  static var keys: [Key<Self>] {
    let week = Duration.seconds(7 * 86_400)
    return [
      .required(
        "directory", \.directory, .path,
        "Holds a folder for each object; relative to this file.", example: "../out"),
      .key(
        "mode", \.fileMode,
        .text(
          .text(pattern: #"^(0?[0-7]{3}|\$\{.*\})$"#),
          orElse: "expected an octal mode that lets the owner read and write and makes nothing "
            + "executable: \"0640\", \"0644\", \"0660\"", Self.mode),
        "Mode of the files in octal digits; directories can be searched by those who can read "
          + "them. Set exactly, whatever the umask. Without mode and group, files are created "
          + "with 0640 and directories with 0750, minus the umask.", example: "0644"),
      .key(
        "group", \.groupID, Kind<String>.text.parsed { try UserGroup.id(of: $0) },
        "Group of new files and directories, a name or a number. The user who runs the program "
          + "must be a member. By default, the system decides.",
        example: "${LOADER_GROUP}"),
      .key(
        "when_missing", \.whenMissing, .choice(called: "policy"),
        "What it means if finished files are missing. fail: the run ends with 65 if "
          + "_manifest.ndjson is also missing, or if older files of the entity still exist. "
          + "A loader that deletes what it has read begins with the oldest, so such files were "
          + "lost. ignore: a loader removes files, in any order."),
      .key("int64", \.int64, .choice(called: "form"), Self.int64Text),
      .group(
        "compression",
        [
          .noted(
            "type", .constant("zstd", called: "compression"), "The only method.", default: "zstd"),
          .key(
            "level", \.compressionLevel, .integer(in: 1...19),
            "Higher levels make smaller files and take longer.", example: 6),
        ], "Each file is one zstd frame."),
      .group(
        "rotate",
        [
          .key(
            "min_bytes", \.rotateMinBytes, .byteCount(in: 64 << 10...1 << 30),
            "Files of changes with fewer bytes, compressed, stay open when a run ends and when they "
              + "are idle. The next runs continue them until they are large enough or max_age has "
              + "passed. Readers see a file once it is finished. By default, every run finishes "
              + "its files.",
            example: "16MiB"),
          .key(
            "max_bytes", \.rotateBytes, .byteCount(in: 64 << 10...1 << 40),
            "Bytes of the file, compressed.", example: "256MiB"),
          .key(
            "max_events", \.rotateEvents, .integer(in: 1 ... .max), "Events in the file.",
            example: 100_000),
          .key(
            "max_age", \.rotateAge, .duration(in: .seconds(1)...week),
            "Time since the file was started.", example: "15m"),
          .key(
            "max_idle", \.rotateIdle, .duration(in: .seconds(1)...week),
            "Time since the file's last event.", example: "1m"),
          .key(
            "max_open_files", \.rotateOpenFiles, .integer(in: 1...10_000),
            "Files in progress at the same time: one for each topic, object and date. When one more "
              + "is started, the one whose last event is oldest is finished. With a low limit of "
              + "open files (ulimit -n), fewer.", example: 500),
        ], "When a file is finished and the next one is started."),
    ]
  }

  /// Read and write bits, those of the owner included; nil for others.
  private static func mode(_ text: String) -> UInt32? {
    guard (3...4).contains(text.utf8.count), let mode = UInt32(text, radix: 8),
      mode & 0o600 == 0o600, mode & ~0o666 == 0
    else { return nil }
    return mode
  }

  /// Nil: 0640, and 0750 of directories, as the umask leaves them.
  var permissions: FileSinkConfiguration.Permissions? {
    guard self.fileMode != nil || self.groupID != nil else { return nil }
    var permissions = FileSinkConfiguration.Permissions()
    permissions.mode = self.fileMode ?? permissions.mode
    permissions.groupID = self.groupID
    return permissions
  }

  var place: String { self.directory }

  var summary: String {
    let stages = self.stages.typeNames
    return "\(stages.isEmpty ? "" : stages + " to ")files in \(self.directory), each up to "
      + "\(JSONReader.text(bytes: self.rotateBytes)), \(self.rotateEvents) events or "
      + JSONReader.text(duration: self.rotateAge)
      + (self.rotateMinBytes.map {
        ", continued by later runs below \(JSONReader.text(bytes: $0))"
      } ?? "")
  }

  func status(_ reading: SinkStatusReading) throws -> SinkStatus {
    try FilesStatus(self, reading).status(now: reading.now)
  }

  /// This sink's share of the files that the process can have open.
  private func openFileCount(of sinks: [Self]) -> Int {
    let wanted = sinks.reduce(0) { $0 + $1.rotateOpenFiles }
    let room = RuntimeDescriptors.makeRoom(forFiles: wanted)
    return max(1, room * self.rotateOpenFiles / wanted)
  }

  private var format: NDJSONFormat { NDJSONFormat(int64AsStrings: self.int64 == .string) }

  func open(_ context: SinkContext) -> FileSink {
    var configuration = FileSinkConfiguration(
      name: self.name, directory: self.directory, compressionLevel: self.compressionLevel,
      rotation: FileSinkConfiguration.Rotation(
        minByteCount: self.rotateMinBytes ?? 0, maxByteCount: self.rotateBytes,
        maxEventCount: self.rotateEvents,
        maxAge: self.rotateAge, maxIdle: self.rotateIdle,
        maxOpenFileCount: self.openFileCount(of: context.configuration.fileSinks)),
      pipeline: context.configuration.name, org: context.org,
      format: self.format, acceptsReset: context.options.recovery.acceptReset,
      whenMissing: self.whenMissing,
      acceptsMissing: context.options.recovery.acceptMissing, permissions: self.permissions)
    configuration.selectsChanges =
      !(context.configuration.stages + self.stages).valueConditionNames.isEmpty
    let source = context.configuration.source
    configuration.polls = source.polls
    if source.snapshot.mode == .initial { configuration.subsets = Set(source.subset.keys) }
    configuration.visibilityWait = source.snapshot.visibilityWait
    configuration.writesAside = context.configuration.run.threads > 1
    configuration.clock = context.clock
    return FileSink(configuration)
  }
}

extension FilesSettings: ExclusiveSink, LocalSink {
  func conflict(with other: any ConfiguredSink) -> (member: String, message: String)? {
    guard let other = other as? Self, Self.isSame(other.directory, self.directory) else {
      return nil
    }
    return (
      "directory",
      "another sink writes to \(self.directory) already; give each sink its own directory"
    )
  }

  /// Links lead to what they name, as far as the directories exist.
  private static func isSame(_ left: String, _ right: String) -> Bool {
    if left == right { return true }
    guard let left = FilePath.real(left), let right = FilePath.real(right) else { return false }
    return left == right
  }

  func localFailures() -> [RunFailure] {
    let reason = LocalCheck.obstacle(to: self.directory) ?? LocalCheck.lack(of: self.directory)
    return reason.map { reason in
      [
        RunFailure(
          .unwritable,
          "the directory of sink '\(self.name)', \(self.directory), cannot be used: \(reason)")
      ]
    } ?? []
  }

  func exportedEpoch(ofTopic topic: String, pipeline: String) throws -> Int {
    var epoch = 0
    try ExportedFile.visit(.records, in: self.directory, pipeline: pipeline) { file in
      if file.topic == topic { epoch = max(epoch, file.epoch) }
    }
    return epoch
  }
}

extension FilesSettings: RemovableSink, PreviewingSink, FailingSink {
  static func status(
    removed name: String, _ kept: RemovedSink, _ reading: SinkStatusReading
  ) throws -> SinkStatus? {
    try FilesStatus(removed: name, kept, reading)?.status(now: reading.now)
  }

  func linePreview(_ configuration: PipelineConfiguration) -> any LinePreview {
    LinesPreview(self.format)
  }

  static func finishRemoved(
    _ succession: SinkSuccession, pipeline: String, org: String, clock: ProcessClock,
    log: (Logger.Level, String) -> Void
  ) throws -> [String: RemovedSink] {
    try RemovedSinkFiles(pipeline: pipeline, org: org, clock: clock).finish(succession, log: log)
  }

  static func failure(_ error: any Error) -> RunFailure? {
    guard let error = FileSinkError(telling: error) else { return nil }
    let reason: EndReason =
      switch error.code {
      case .io: .sinkIO
      case .locked: .alreadyRunning
      case .lostState: .lostState
      case .lostOutput: .lostOutput
      case .otherDirectory: .otherDirectory
      case .unknownFile: .unknownFile
      case .unverifiable: .unverifiable
      default: .inconsistentOutput
      }
    return RunFailure(reason, error.message)
  }
}

extension PipelineConfiguration {
  var fileSinks: [FilesSettings] { self.sinks.compactMap { $0 as? FilesSettings } }
}
