import Checkpoint
import Clocks
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

  var name = "files"
  /// Absolute.
  var directory: String
  /// The level of zstd, 1…19.
  var compressionLevel = 1
  var int64 = Int64Form.number
  var start: SinkStart?
  /// Bytes of a finished file, compressed.
  var rotateBytes = 128 << 20
  var rotateEvents = 1_000_000
  var rotateAge = Duration.seconds(3600)
  var rotateIdle = Duration.seconds(300)
  /// What it means that finished files are not there.
  var whenMissing = FileSinkConfiguration.MissingPolicy.fail
  /// Nil: 0640, and 0750 of directories, as the umask leaves them.
  var permissions: FileSinkConfiguration.Permissions?
  var stages: [StageConfiguration] = []

  init(directory: String) { self.directory = directory }

  var place: String { self.directory }
  var takesReads: Bool { true }

  var summary: String {
    let stages = self.stages.typeNames
    return "\(stages.isEmpty ? "" : stages + " to ")files in \(self.directory)"
  }

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

  func status(_ reading: SinkStatusReading) throws -> any SinkStatus {
    try FilesStatus(self, reading)
  }

  static func status(
    removed name: String, _ kept: RemovedSink, _ reading: SinkStatusReading
  ) throws -> (any SinkStatus)? {
    try FilesStatus(removed: name, kept, reading)
  }

  func linePreview(_ configuration: PipelineConfiguration) -> any LinePreview {
    NDJSONPreview(NDJSONOptions(int64AsStrings: self.int64 == .string))
  }

  func runSink(_ context: SinkContext) -> any RunSink { FilesRun(self, context) }

  static func finishRemoved(
    _ succession: SinkSuccession, pipeline: String, org: String, clock: ProcessClock,
    log: (Logger.Level, String) -> Void
  ) throws -> [String: RemovedSink] {
    try RemovedSinkFiles(pipeline: pipeline, org: org, clock: clock).finish(succession, log: log)
  }

  static func failure(_ error: any Error) -> RunFailure? {
    guard let error = error as? FileSinkError else { return nil }
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
