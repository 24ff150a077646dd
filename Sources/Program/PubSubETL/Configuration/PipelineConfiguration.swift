import Cryptography
import FileSink
import HTTPClient
import JSON
import Pipeline
import PubSubAPI

/// A pipeline as its file means it: checked, with defaults filled in, paths absolute.
///
/// Defaults stand here, at the properties, and nowhere else.
struct PipelineConfiguration: Sendable {
  /// Absolute path of the pipeline file.
  var file: String
  /// Absolute directory that relative paths of the file are relative to.
  var base: String
  /// Identity of the pipeline in file names and checkpoints.
  var name: String
  var source: SourceConfiguration
  var stages: [StageConfiguration] = []
  /// At least one.
  var sinks: [any ConfiguredSink]
  var commit = CommitConfiguration()
  var checkpoint: CheckpointConfiguration
  var deadLetter: DeadLetterConfiguration
  var run = RunConfiguration()
  var retry = RetryConfiguration()
  var repair = RepairConfiguration()
  var allowance = AllowanceConfiguration()
  /// What no output may hold.
  var secrets = SecretMask()
  /// Absolute paths of files that hold secrets, as far as they have been read.
  var secretFiles: [String] = []
  /// Absolute paths of the files that it was read from, and of those that it names.
  var inputFiles: [String] = []

  /// What decides how sinks relate to those of a checkpoint.
  var sinkPlaces: [(name: String, start: SinkStart?, directory: String)] {
    self.sinks.map { ($0.name, $0.start, $0.place) }
  }

  /// Some sink has no position but the checkpoint's; without one the checkpoint is a copy.
  var needsCheckpoint: Bool { !self.sinks.allSatisfy(\.keepsPosition) }
}

/// Where a topic is read from when no position of it is stored.
enum StartPosition: Sendable, Equatable {
  case earliest
  case latest
  /// The events after this one.
  case replayID(ReplayID)
}

struct SourceConfiguration: Sendable {
  struct Topic: Sendable, Equatable {
    var name: String
    /// Nil: a first run is an error, which the runner raises.
    var start: StartPosition?
  }

  enum InvalidReplayPolicy: String, CaseIterable, Sendable {
    case fail, earliest, latest
    /// The earliest event, and all records are read again.
    case snapshot
  }

  enum RecordIDs: String, CaseIterable, Sendable {
    /// A change of several records is one row per record.
    case rows
    /// It is one row with all of them.
    case array
  }

  var org: OrgConfiguration
  /// At least one, no name twice.
  var topics: [Topic]
  /// Events outstanding per stream, 1…100.
  var numRequested = 100
  var onInvalidReplay = InvalidReplayPolicy.fail
  var recordIDs = RecordIDs.rows
  var snapshot = SnapshotConfiguration()
  /// The subscription whose position the service keeps, too; then there is one topic, without a start.
  var managed: ManagedSubscription.Record?
}

struct OrgConfiguration: Sendable {
  var endpoint: ServiceAddress
  var tls = TLSConfiguration()
  var proxy = ProxySettings.none
  /// Organization ID of 15 or 18 characters; nil to take it from the login.
  var orgID: String?
  var auth: AuthConfiguration

  static let defaultEndpoint = "https://api.pubsub.salesforce.com:7443"
}

/// How the two ends of a connection prove who they are. Paths are absolute.
struct TLSConfiguration: Sendable, Equatable {
  struct Identity: Sendable, Equatable {
    var certificateFile: String
    var keyFile: String
  }

  /// PEM file with the certificates to trust; nil for those of the system.
  var caFile: String?
  /// Shown to servers that ask for it.
  var identity: Identity?
}

/// A stage as its object in the file, which `TransformRegistry` has accepted.
struct StageConfiguration: Sendable, Equatable {
  /// JSON pointer in the pipeline file.
  var path: String
  var value: JSONValue

  /// Its kind; empty when that is what is wrong with it.
  var type: String { self.value["type"]?.string ?? "" }

  /// The stage, new for each run.
  func transform() -> any Transform {
    let reader = JSONReader(self.value, path: self.path, mistakes: JSONMistakes())
    guard let transform = TransformRegistry.transform(reading: reader) else {
      preconditionFailure("\(self.path) was accepted when the file was loaded")
    }
    return transform
  }
}

extension [StageConfiguration] {
  /// Their types, for people.
  var typeNames: String { self.compactMap { $0.value["type"]?.string }.joined(separator: ", ") }
}

/// When the events that have arrived are made durable together.
struct CommitConfiguration: Sendable, Equatable {
  var maxEvents = 2000
  /// The limit for encoded output.
  var maxBytes = 16 << 20
  var maxDelay = Duration.seconds(1)

  /// The defaults. The sink that wants the largest commits decides.
  init(sinks: [any ConfiguredSink] = []) {
    self.maxEvents = sinks.map { type(of: $0).commitMaxEvents }.max() ?? self.maxEvents
  }
}

struct CheckpointConfiguration: Sendable, Equatable {
  /// Absolute.
  var directory: String
  /// A position not confirmed for that long is renewed before a run ends as caught up.
  var renewAfter = Duration.seconds(12 * 3600)
}

struct DeadLetterConfiguration: Sendable, Equatable {
  /// Absolute; `dead` in the checkpoint's directory unless said otherwise.
  var directory: String
  /// Dead letters a run may write and still succeed; nil for any number.
  var max: Int? = 0
  /// Share of a run's events, 0…1, that may become dead letters; nil for any share.
  var maxRatio: Double?
  var payload = DeadLetterFile.Payload.full
  /// What opens payloads that are sealed: the present key, and those before it.
  var keys: [SealingKey] = []

  var isSealed: Bool {
    if case .sealed = self.payload { true } else { false }
  }

  /// What `payload` may be in the file.
  enum PayloadChoice: String, CaseIterable, Sendable {
    case full, sealed, none
  }
}

struct RunConfiguration: Sendable, Equatable {
  enum Until: Sendable, Equatable {
    case caughtUp
    case forever
    case events(Int)
    case duration(Duration)
  }

  enum IfRunning: String, CaseIterable, Sendable { case fail, skip, wait }

  /// Kinds of `attention` in the report.
  enum Attention: String, CaseIterable, Sendable {
    case gaps, holes
    case deadLetters = "dead_letters"
  }

  var until = Until.caughtUp
  /// Silence after which a topic counts as caught up.
  var quiet = Duration.seconds(15)
  var ifRunning = IfRunning.fail
  /// Kinds that end the run with exit code 65.
  var failOn: Set<Attention> = []

  /// What was asked for by a command of its own is done, or its exit code says that it was not.
  mutating func mustNotSkip() {
    if self.ifRunning == .skip { self.ifRunning = .fail }
  }
}
