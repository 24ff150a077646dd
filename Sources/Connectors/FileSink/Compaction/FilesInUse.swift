internal import DurableFiles
internal import Glibc

/// A lock on the folders of a directory: runs that write files there and commands that read them
/// share it, and `compact` and `erase` take it alone while they exchange a folder.
///
/// Held until the object goes, or the process ends.
final class FilesInUse {
  private let file: OpenFile

  private static func path(_ directory: String) -> String { "\(directory)/.folders.lock" }

  /// Waits 10 s at most while compaction exchanges a folder, which takes a moment.
  ///
  /// - Throws: `FileSinkError.locked` if somebody else still has the lock, `.io`.
  init(
    writingTo directory: String, on fileSystem: any FileSystem
  ) throws(FileSinkError) {
    do throws(FileSystemError) {
      self.file = try OpenFile(Self.path(directory), [.write, .create], on: fileSystem)
      guard try Self.share(self.file) else {
        throw FileSystemError("flock", self.file.path, code: EBUSY)
      }
    } catch {
      guard error.code == EBUSY else { throw FileSinkError(error) }
      throw FileSinkError(
        .locked,
        "\(Self.path(directory)) has been locked for \(Self.attemptCount / 10) s: 'compact' was "
          + "stopped while it exchanged a folder, or another program holds the lock; end it, and run "
          + "again")
    }
  }

  private static let attemptCount = 100

  private static func share(_ file: borrowing OpenFile) throws(FileSystemError) -> Bool {
    for _ in 1..<Self.attemptCount {
      if try file.lock(shared: true, wait: false) { return true }
      usleep(100_000)
    }
    return try file.lock(shared: true, wait: false)
  }

  /// Waits as long. Nil if the file is missing, because neither run nor compaction has been here, or
  /// if it cannot be locked: then a file may be replaced while it is read, and is reported as missing.
  init?(readingFrom directory: String, on fileSystem: any FileSystem = SystemFileSystem()) {
    do throws(FileSystemError) {
      self.file = try OpenFile(Self.path(directory), [], on: fileSystem)
      guard try Self.share(self.file) else { return nil }
    } catch {
      return nil
    }
  }

  /// For commands that exchange folders.
  ///
  /// - Parameters:
  ///   - command: the command's name, for messages.
  ///   - wait: called between attempts. Returns false to give up.
  /// - Throws: `FileSinkError.locked` if somebody else still has the lock, `.io`.
  init(
    replacingIn directory: String, for command: String, on fileSystem: any FileSystem,
    wait: () -> Bool
  ) throws(FileSinkError) {
    do throws(FileSystemError) {
      self.file = try OpenFile(Self.path(directory), [.write, .create], on: fileSystem)
      while try !self.file.lock(wait: false) {
        guard wait() else { throw FileSystemError("flock", self.file.path, code: EBUSY) }
      }
    } catch {
      guard error.code == EBUSY else { throw FileSinkError(error) }
      throw FileSinkError(
        .locked,
        "files in \(directory) are in use by a run of another pipeline, or by 'status' or 'verify'; "
          + "run '\(command)' again later")
    }
  }
}
