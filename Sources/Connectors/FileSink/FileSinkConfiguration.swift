package import Clocks

/// The configuration of a files sink.
package struct FileSinkConfiguration: Sendable {
  /// When a file is finished and the next one begins.
  package struct Rotation: Sendable, Equatable {
    /// Files of events with fewer compressed bytes stay open when the run ends, and when they are
    /// idle. 0 keeps no file open.
    package var minByteCount: Int
    /// Compressed bytes; a file may exceed this by the size of one event, and by
    /// `WriterThread.maxByteCount` uncompressed bytes that are on their way.
    package var maxByteCount: Int
    package var maxEventCount: Int
    /// Since the first event of the file was written.
    package var maxAge: Duration
    /// Since the last event of the file was written.
    package var maxIdle: Duration
    /// The maximum number of files in progress; above it the least recently used file is finished.
    package var maxOpenFileCount: Int

    package init(
      minByteCount: Int = 0, maxByteCount: Int = 128 << 20, maxEventCount: Int = 1_000_000,
      maxAge: Duration = .seconds(3600), maxIdle: Duration = .seconds(300),
      maxOpenFileCount: Int = 250
    ) {
      self.minByteCount = minByteCount
      self.maxByteCount = maxByteCount
      self.maxEventCount = maxEventCount
      self.maxAge = maxAge
      self.maxIdle = maxIdle
      self.maxOpenFileCount = maxOpenFileCount
    }
  }

  /// What missing finished files mean.
  package enum MissingPolicy: String, Sendable, CaseIterable {
    /// They are lost if the manifest is also missing, or if older files of the entity still exist,
    /// because a loader deletes the oldest first.
    case fail
    /// A loader removes files, in any order, perhaps with the manifest.
    case ignore
  }

  /// Permissions of new files and directories.
  package struct Permissions: Sendable, Equatable {
    /// The mode of files; 0o640. Directories can be searched by those who can read them.
    package var mode: UInt32
    /// nil means the group of the process.
    package var groupID: UInt32?

    package init(mode: UInt32 = 0o640, groupID: UInt32? = nil) {
      self.mode = mode
      self.groupID = groupID
    }
  }

  /// Identity of the sink in the checkpoint.
  package var name: String
  /// Absolute path; created if missing.
  package var directory: String
  /// zstd level, 1…22. The window is limited whatever the level, see `ZstdCompressor`.
  package var compressionLevel: Int
  package var rotation: Rotation
  /// Name of the pipeline; part of file names.
  package var pipeline: String
  /// ID of the org, kept in the manifest.
  package var org: String
  /// The format of the rows in the files.
  package var format: any RowFormat
  /// Start even if the manifest shows exports of an earlier run whose checkpoint is missing
  /// (`--accept-reset`).
  package var acceptsReset: Bool
  /// nil skips the check of earlier files.
  package var whenMissing: MissingPolicy?
  /// Continue although finished files are missing or changed (`--accept-missing`).
  package var acceptsMissing: Bool
  /// nil means 0640 and 0750, reduced by the umask.
  package var permissions: Permissions?
  /// Conditions about values select changes, not records: a record may have changes whose other
  /// values no read brings.
  package var selectsChanges = false
  /// The objects without change events, and how often they are read.
  package var polls: [String: Duration] = [:]
  /// The objects of which the files have only a part.
  package var subsets: Set<String> = []
  /// How long it may take until every reader of the org sees a commit.
  package var visibilityWait = Duration.seconds(60)
  /// Compresses and writes on a thread of its own.
  package var writesAside = false
  package var clock = ProcessClock()

  package init(
    name: String = "files", directory: String, compressionLevel: Int = 1,
    rotation: Rotation = Rotation(), pipeline: String, org: String,
    format: any RowFormat = NDJSONFormat(),
    acceptsReset: Bool = false, whenMissing: MissingPolicy? = nil, acceptsMissing: Bool = false,
    permissions: Permissions? = nil
  ) {
    self.name = name
    self.directory = directory
    self.compressionLevel = compressionLevel
    self.rotation = rotation
    self.pipeline = pipeline
    self.org = org
    self.format = format
    self.acceptsReset = acceptsReset
    self.whenMissing = whenMissing
    self.acceptsMissing = acceptsMissing
    self.permissions = permissions
  }
}
