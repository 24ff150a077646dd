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
  /// `"int64": "string"`: Avro `long` goes out as text.
  public var int64AsStrings: Bool
  /// Begin although the manifest shows that an earlier run exported here and its checkpoint is
  /// gone (`--accept-reset`).
  public var acceptsReset: Bool

  public init(
    name: String = "files", directory: String, compressionLevel: Int = 1,
    rotation: Rotation = Rotation(), pipeline: String, org: String, int64AsStrings: Bool = false,
    acceptsReset: Bool = false
  ) {
    self.name = name
    self.directory = directory
    self.compressionLevel = compressionLevel
    self.rotation = rotation
    self.pipeline = pipeline
    self.org = org
    self.int64AsStrings = int64AsStrings
    self.acceptsReset = acceptsReset
  }
}
