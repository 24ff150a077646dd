internal import DurableFiles
internal import Pipeline

/// Files cannot be written, or the directory and the checkpoint disagree.
package struct FileSinkError: Error, Sendable, CustomStringConvertible {
  package struct Code: Hashable, Sendable {
    private enum Value {
      case io, unknownFile, inconsistent, lostState, lostOutput, otherDirectory, locked
      case unverifiable
    }
    private var value: Value
    private init(_ value: Value) { self.value = value }

    /// A system call failed. Exit code 74.
    package static var io: Self { Self(.io) }
    /// A finished file of this pipeline is in neither the manifest nor the checkpoint. Exit code
    /// 65.
    package static var unknownFile: Self { Self(.unknownFile) }
    /// A file or the manifest differs from its description in the checkpoint or manifest. Exit code
    /// 65.
    package static var inconsistent: Self { Self(.inconsistent) }
    /// The manifest has files of this pipeline and org, but no checkpoint exists. Exit code 65.
    package static var lostState: Self { Self(.lostState) }
    /// Finished files are missing or changed. Exit code 65.
    package static var lostOutput: Self { Self(.lostOutput) }
    /// The directory is not the one of the last run, whose files it does not have. Exit code 65.
    package static var otherDirectory: Self { Self(.otherDirectory) }
    /// Another run writes files of this pipeline in the directory. Exit code 75.
    package static var locked: Self { Self(.locked) }
    /// Lines lack what a comparison needs. Exit code 78.
    package static var unverifiable: Self { Self(.unverifiable) }
  }

  package var code: Code
  package var message: String
  package var cause: (any Error)?

  init(_ code: Code, _ message: String, cause: (any Error)? = nil) {
    self.code = code
    self.message = message
    self.cause = cause
  }

  /// The bytes of a file are not those that were written.
  ///
  /// - Parameters:
  ///   - path: absolute.
  ///   - found, expected: SHA-256, hexadecimal.
  static func changed(
    _ path: String, found: String, expected: String,
    accordingTo evidence: LineCopy.Evidence = .checkpoint
  ) -> FileSinkError {
    FileSinkError(
      .inconsistent,
      "\(path): its contents are not what was written (sha256 \(found), but "
        + "\(evidence.place) says \(expected)): the disk lost data or the file was changed. "
        + evidence.remedy)
  }

  init(_ error: FileSystemError) {
    // A name that exists already means a file that neither checkpoint nor manifest lists.
    let code = error.code == FileSystemError.exists ? Code.unknownFile : .io
    self.init(code, "files: \(error)", cause: error)
  }

  /// The error of this module for one of the file system; nil for other errors.
  package init?(telling error: any Error) {
    switch error {
    case let error as FileSinkError: self = error
    case let error as FileSystemError: self.init(error)
    default: return nil
    }
  }

  package var description: String { self.message }
}
