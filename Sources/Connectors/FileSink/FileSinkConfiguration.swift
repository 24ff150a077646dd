package import Clocks

/// The configuration of a files sink.
public struct FileSinkConfiguration: Sendable {
  /// When a file is finished and the next one begins.
  public struct Rotation: Sendable, Equatable {
    /// Compressed bytes; a file may exceed this by the size of one event.
    public var maxByteCount: Int
    public var maxEventCount: Int
    /// Since the first event of the file was written.
    public var maxAge: Duration
    /// Since the last event of the file was written.
    public var maxIdle: Duration
    /// The maximum number of files in progress; above it the least recently used file is finished.
    public var maxOpenFileCount: Int

    public init(
      maxByteCount: Int = 128 << 20, maxEventCount: Int = 1_000_000,
      maxAge: Duration = .seconds(3600), maxIdle: Duration = .seconds(300),
      maxOpenFileCount: Int = 64
    ) {
      self.maxByteCount = maxByteCount
      self.maxEventCount = maxEventCount
      self.maxAge = maxAge
      self.maxIdle = maxIdle
      self.maxOpenFileCount = maxOpenFileCount
    }
  }

  /// What missing finished files mean.
  public enum MissingPolicy: String, Sendable, CaseIterable {
    /// They are lost if the manifest is also missing, or if older files of the entity still exist,
    /// because a loader deletes the oldest first.
    case fail
    /// A loader removes files, in any order, perhaps with the manifest.
    case ignore
  }

  /// Permissions of new files and directories.
  public struct Permissions: Sendable, Equatable {
    /// The mode of files; 0o640. Directories can be searched by those who can read them.
    public var mode: UInt32
    /// nil means the group of the process.
    public var groupID: UInt32?

    public init(mode: UInt32 = 0o640, groupID: UInt32? = nil) {
      self.mode = mode
      self.groupID = groupID
    }
  }

  /// Identity of the sink in the checkpoint.
  public var name: String
  /// Absolute path; created if missing.
  public var directory: String
  /// zstd level, 1…22. The window is limited whatever the level, see `ZstdCompressor`.
  public var compressionLevel: Int
  public var rotation: Rotation
  /// Name of the pipeline; part of file names.
  public var pipeline: String
  /// ID of the org, kept in the manifest.
  public var org: String
  /// The format of the rows in the files.
  public var format: any RowFormat
  /// Start even if the manifest shows exports of an earlier run whose checkpoint is missing
  /// (`--accept-reset`).
  public var acceptsReset: Bool
  /// nil skips the check of earlier files.
  public var whenMissing: MissingPolicy?
  /// Continue although finished files are missing or changed (`--accept-missing`).
  public var acceptsMissing: Bool
  /// nil means 0640 and 0750, reduced by the umask.
  public var permissions: Permissions?
  /// Conditions about values select changes, not records: a record may have changes whose other
  /// values no read brings.
  public var selectsChanges = false
  package var clock = ProcessClock()

  public init(
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
