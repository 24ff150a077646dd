import Glibc

/// Warnings about connections and secrets that others can read. They do not stop a run.
extension PipelineConfiguration {
  /// One sentence each, with the remedy; for `check` and at the start of a run.
  var securityWarnings: [String] {
    self.sinks.flatMap { ($0 as? any ConnectingSink)?.securityWarnings ?? [] }
      + self.secretFiles.compactMap(Self.warning)
  }

  /// A secret may be read by its owner alone; by a group too where root owns it, since the group has
  /// been chosen then (libpq has the same rule for keys).
  private static func warning(_ file: String) -> String? {
    var status = stat()
    guard stat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    let allowed: mode_t = status.st_uid == 0 ? 0o640 : 0o600
    guard status.st_mode & 0o044 & ~allowed != 0 else { return nil }
    // Secrets that a container gets on a file system of its own cannot be changed, and are nobody
    // else's to read.
    var place = statvfs()
    if statvfs(file, &place) == 0, place.f_flag & UInt(ST_RDONLY) != 0 { return nil }
    let mode = String(status.st_mode & 0o777, radix: 8)
    return "\(file) holds a secret, and other users can read it (mode \(mode)); run chmod "
      + "\(String(allowed, radix: 8)) \(file)"
  }
}
