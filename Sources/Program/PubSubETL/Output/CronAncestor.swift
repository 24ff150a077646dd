import Glibc

/// Finds out whether cron has started this run.
enum CronAncestor {
  /// Whether the process, or one that it descends from, is cron, which mails what its jobs print.
  ///
  /// False where `/proc` does not show these processes.
  static let isThere = Self.isThere(above: getpid()) { process in
    (try? TextFile.read("/proc/\(process)/stat", limit: 4096)).map {
      String(decoding: $0, as: UTF8.self)
    }
  }

  /// - Parameter stat: the content of `/proc/PID/stat` (proc_pid_stat(5)): `4711 (cron) S 1 …`, with the
  ///   parent as fourth field; nil if there is no such process.
  static func isThere(above process: Int32, stat: (Int32) -> String?) -> Bool {
    var process = process
    // A process that ends meanwhile may let its number be used again, so the way up could be a circle.
    for _ in 0..<64 where process > 0 {
      guard let line = stat(process), let open = line.firstIndex(of: "("),
        let close = line.lastIndex(of: ")"), open < close
      else { return false }
      if Self.names.contains(line[line.index(after: open)..<close].lowercased()) { return true }
      let fields = line[line.index(after: close)...].split(separator: " ")
      guard fields.count > 1, let parent = Int32(fields[1]) else { return false }
      process = parent
    }
    return false
  }

  private static let names: Set<String> = ["cron", "crond", "anacron", "fcron", "dcron"]
}
