internal import DurableFiles

/// A lock on the folders of a directory: runs that write files there and commands that read them
/// share it, and compaction takes it alone while it exchanges a folder.
///
/// Held until the object goes, or the process ends.
final class FilesInUse {
  private let file: OpenFile

  private static func path(_ directory: String) -> String { "\(directory)/.folders.lock" }

  /// Waits while compaction exchanges a folder.
  ///
  /// - Throws: `FileSinkError.io`.
  init(
    writingTo directory: String, on fileSystem: any FileSystem
  ) throws(FileSinkError) {
    do throws(FileSystemError) {
      self.file = try OpenFile(Self.path(directory), [.write, .create], on: fileSystem)
      _ = try self.file.lock(shared: true, wait: true)
    } catch {
      throw FileSinkError(error)
    }
  }

  /// Waits while compaction exchanges a folder. Nil if the file is missing, because neither run nor
  /// compaction has been here, or if this user cannot lock it: then a file may be replaced while it
  /// is read, and is reported as missing.
  init?(readingFrom directory: String, on fileSystem: any FileSystem = SystemFileSystem()) {
    do throws(FileSystemError) {
      self.file = try OpenFile(Self.path(directory), [], on: fileSystem)
      _ = try self.file.lock(shared: true, wait: true)
    } catch {
      return nil
    }
  }

  /// For compaction.
  ///
  /// - Parameter wait: called between attempts. Returns false to give up.
  /// - Throws: `FileSinkError.locked` if somebody else still has the lock, `.io`.
  init(
    replacingIn directory: String, on fileSystem: any FileSystem, wait: () -> Bool
  ) throws(FileSinkError) {
    do throws(FileSystemError) {
      self.file = try OpenFile(Self.path(directory), [.write, .create], on: fileSystem)
      while try !self.file.lock(wait: false) {
        guard wait() else { throw FileSystemError("flock", self.file.path, code: Self.busy) }
      }
    } catch {
      guard error.code == Self.busy else { throw FileSinkError(error) }
      throw FileSinkError(
        .locked,
        "files in \(directory) are in use by a run of another pipeline, or by 'status' or 'verify'; "
          + "run 'compact' again later")
    }
  }

  /// `EBUSY`, which flock(2) does not report.
  private static let busy: Int32 = 16
}
