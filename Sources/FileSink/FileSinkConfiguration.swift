/// How a files sink is set up.
public struct FileSinkConfiguration: Sendable, Equatable {
  /// When a file is finished and the next one begun.
  public struct Rotation: Sendable, Equatable {
    /// Compressed bytes; a file may be larger by what one event adds.
    public var maxByteCount: Int
    public var maxEventCount: Int
    /// Since the first event of the file was written.
    public var maxAge: Duration
    /// Since the last event of the file was written.
    public var maxIdle: Duration
    /// Files in progress at one time; beyond it the one used longest ago is finished.
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

  /// What it means that finished files are not there.
  public enum MissingPolicy: String, Sendable, CaseIterable {
    /// They are lost when the manifest is gone with them, or when older ones of the entity are
    /// there: a loader that deletes what it has read begins with the oldest.
    case fail
    /// A loader takes files away, in any order, perhaps with the manifest.
    case ignore
  }

  /// Who may read and write files and directories that are made.
  public struct Permissions: Sendable, Equatable {
    /// The mode of files; 0o640. Directories can be searched by those who can read them.
    public var mode: UInt32
    /// nil: that of the process.
    public var groupID: UInt32?

    public init(mode: UInt32 = 0o640, groupID: UInt32? = nil) {
      self.mode = mode
      self.groupID = groupID
    }
  }

  /// Identity of the sink in the checkpoint.
  public var name: String
  /// Absolute path; made when missing.
  public var directory: String
  /// zstd level, 1…22. The window is limited whatever the level, see `ZstdCompressor`.
  public var compressionLevel: Int
  public var rotation: Rotation
  /// Name of the pipeline; part of file names.
  public var pipeline: String
  /// ID of the org, kept in the manifest.
  public var org: String
  /// `"int64": "string"`: Avro `long` goes out as text. Only as a column of its own: the text of an
  /// array or a map is made once for all sinks, and does not tell `long` from `int`.
  public var int64AsStrings: Bool
  /// Begin although the manifest shows that an earlier run exported here and its checkpoint is
  /// gone (`--accept-reset`).
  public var acceptsReset: Bool
  /// nil: what earlier runs finished is not looked at.
  public var whenMissing: MissingPolicy?
  /// Go on although finished files are missing or changed (`--accept-missing`).
  public var acceptsMissing: Bool
  /// nil: 0640 and 0750 as the umask leaves them.
  public var permissions: Permissions?

  public init(
    name: String = "files", directory: String, compressionLevel: Int = 1,
    rotation: Rotation = Rotation(), pipeline: String, org: String, int64AsStrings: Bool = false,
    acceptsReset: Bool = false, whenMissing: MissingPolicy? = nil, acceptsMissing: Bool = false,
    permissions: Permissions? = nil
  ) {
    self.name = name
    self.directory = directory
    self.compressionLevel = compressionLevel
    self.rotation = rotation
    self.pipeline = pipeline
    self.org = org
    self.int64AsStrings = int64AsStrings
    self.acceptsReset = acceptsReset
    self.whenMissing = whenMissing
    self.acceptsMissing = acceptsMissing
    self.permissions = permissions
  }
}
