internal import DurableFiles
import Glibc

/// What is free on the file system of a directory.
struct DiskSpace: Equatable {
  /// The directory, or the one that it would be made in.
  var directory: String
  /// Bytes that this user may fill.
  var bytes: Int64
  /// Files that this user may make; nil for a file system without such a limit.
  var files: Int64?

  /// Less is worth a look: a run writes some files, and a copy hundreds of megabytes.
  private static let fewBytes: Int64 = 1 << 30
  private static let fewFiles: Int64 = 10_000

  /// One for each file system; none for a directory that cannot be looked at.
  ///
  /// - Parameter directories: absolute; need not exist.
  static func ofFileSystems(of directories: [String]) -> [DiskSpace] {
    var seen: Set<UInt> = []
    return directories.compactMap { directory in
      var place = directory
      while !FilePath.exists(place), place != "/" { place = FilePath.directory(of: place) }
      var status = statvfs()
      guard statvfs(place, &status) == 0, seen.insert(status.f_fsid).inserted else { return nil }
      return DiskSpace(
        directory: place,
        bytes: Int64(
          clamping: status.f_bavail.multipliedReportingOverflow(by: status.f_frsize)
            .partialValue),
        files: status.f_files == 0 ? nil : Int64(clamping: status.f_favail))
    }
  }

  var finding: Finding {
    let text =
      "\(self.directory): \(ProgressLine.size(self.bytes))"
      + (self.files.map { " and \(ProgressLine.grouped($0)) files" } ?? "") + " free"
    guard self.bytes < Self.fewBytes || (self.files ?? .max) < Self.fewFiles else {
      return Finding(.ok, "space", text)
    }
    return Finding(
      .attention, "space",
      "\(text); a run ends with 74 if there is none, so free some or move the output")
  }
}
