internal import DurableFiles

/// The checkpoint of a pipeline cannot be read, written or owned.
public struct CheckpointError: Error, Sendable, CustomStringConvertible {
  public struct Code: Hashable, Sendable {
    private enum Value { case alreadyRunning, damaged, mismatch, tooLarge, io }
    private var value: Value
    private init(_ value: Value) { self.value = value }

    /// Another process holds the host lock. Exit code 75.
    public static var alreadyRunning: Self { Self(.alreadyRunning) }
    /// The file is not a checkpoint that this version reads. Exit code 65.
    public static var damaged: Self { Self(.damaged) }
    /// The checkpoint belongs to another pipeline. Exit code 78.
    public static var mismatch: Self { Self(.mismatch) }
    /// The checkpoint is larger than the limit for reading. Nothing was written. Exit code 65.
    public static var tooLarge: Self { Self(.tooLarge) }
    /// A system call failed. Exit code 74.
    public static var io: Self { Self(.io) }
  }

  public var code: Code
  public var message: String
  /// With `alreadyRunning`: the process that holds the lock, when its ID could be read.
  public var processID: Int32?
  public var cause: (any Error)?

  public init(
    _ code: Code, _ message: String, processID: Int32? = nil, cause: (any Error)? = nil
  ) {
    self.code = code
    self.message = message
    self.processID = processID
    self.cause = cause
  }

  init(_ doing: String, _ error: FileSystemError) {
    self.init(.io, "\(doing): \(error)", cause: error)
  }

  public var description: String { self.message }
}
