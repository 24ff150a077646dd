internal import DurableFiles

/// The checkpoint of a pipeline cannot be read, written or owned.
package struct CheckpointError: Error, Sendable, CustomStringConvertible {
  package struct Code: Hashable, Sendable {
    private enum Value { case alreadyRunning, damaged, mismatch, tooLarge, io }
    private var value: Value
    private init(_ value: Value) { self.value = value }

    /// Another process holds the host lock. Exit code 75.
    package static var alreadyRunning: Self { Self(.alreadyRunning) }
    /// The file is not a checkpoint that this version reads. Exit code 65.
    package static var damaged: Self { Self(.damaged) }
    /// The checkpoint belongs to another pipeline. Exit code 78.
    package static var mismatch: Self { Self(.mismatch) }
    /// The checkpoint is larger than the limit for reading. Nothing was written. Exit code 65.
    package static var tooLarge: Self { Self(.tooLarge) }
    /// A system call failed. Exit code 74.
    package static var io: Self { Self(.io) }
  }

  package var code: Code
  package var message: String
  /// With `alreadyRunning`: the process that holds the lock, when its ID could be read.
  package var processID: Int32?
  package var cause: (any Error)?

  package init(
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

  package var description: String { self.message }
}
