/// Finds out what the file system of a directory supports, by doing with two small files what is
/// done with those that matter.
package enum FileSystemProbe {
  /// - Parameters:
  ///   - directory: absolute; exists.
  ///   - name: of a file there that nobody else uses. What a crash or a failed probe has left is
  ///     removed: after a failed call nothing more is done.
  /// - Returns: what the file system lacks and what is done instead, as text; nil if it has all.
  /// - Throws: the error of a call that nothing can replace.
  package static func shortcomings(
    of directory: String, name: String, on fileSystem: any FileSystem
  ) throws(FileSystemError) -> String? {
    let first = "\(directory)/\(name)"
    let second = "\(first).renamed"
    if try fileSystem.status(at: second) != nil { try fileSystem.remove(second) }
    try Self.write(first, on: fileSystem)
    let substitute = try Self.move(first, to: second, on: fileSystem)
    try fileSystem.synchronizeDirectory(directory)
    try fileSystem.remove(second)
    return substitute.map { "the file system (\(MountedFileSystem.name(of: directory))) \($0)" }
  }

  private static func write(
    _ path: String, on fileSystem: any FileSystem
  ) throws(FileSystemError) {
    let file = try OpenFile(temporary: path, on: fileSystem)
    _ = try file.lock(wait: false)
    try file.write([0, 0])
    try file.truncate(to: 1)
    try file.synchronize(dataOnly: true)
    try file.checkIntact(byteCount: 1)
  }

  /// Does what `FileSystem.move` does.
  private static func move(
    _ from: String, to: String, on fileSystem: any FileSystem
  ) throws(FileSystemError) -> String? {
    do throws(FileSystemError) {
      try fileSystem.renameWithoutReplacing(from, to: to)
      return nil
    } catch {
      guard FileSystemError.notSupported.contains(error.code) else { throw error }
    }
    do throws(FileSystemError) {
      try fileSystem.link(from, to: to)
      try fileSystem.remove(from)
      return "has no RENAME_NOREPLACE; files get their names by link and unlink"
    } catch {
      guard FileSystemError.notSupported.contains(error.code) else { throw error }
    }
    try fileSystem.rename(from, to: to)
    return "has neither RENAME_NOREPLACE nor links; files are renamed after a check that their "
      + "names are free"
  }
}

extension FileSystemProbe {
  /// The same for a directory that a run would make if it does not exist. Leaves nothing.
  package static func shortcomings(
    ofPlanned directory: String, name: String
  ) throws(FileSystemError) -> String? {
    let fileSystem = SystemFileSystem()
    var place = directory
    while place != "/", try fileSystem.status(at: place) == nil {
      place = SystemFileSystem.parent(of: place)
    }
    do throws(FileSystemError) {
      return try Self.shortcomings(of: place, name: name, on: fileSystem)
    } catch {
      for path in ["\(place)/\(name)", "\(place)/\(name).renamed"] {
        try? fileSystem.remove(path)
      }
      throw error
    }
  }
}
