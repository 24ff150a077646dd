internal import Glibc

/// Whether a run holds the lock of a pipeline, found without touching the lock: taking it, even for
/// a moment and shared, would turn away a run that begins in that moment.
package struct RunLockState: Sendable, Equatable {
  /// nil when the system does not tell.
  package var isHeld: Bool?
  /// The process that took the lock last, a run or a command that changes the state.
  package var processID: Int32?
  /// The last run that took the lock; nil if there has been none.
  package var run: Run?

  package struct Run: Sendable, Equatable {
    /// Nil if the run was killed as it took the lock.
    package var processID: Int32?
    /// Milliseconds since 1970.
    package var takenAt: Int64
  }

  /// - Parameter path: `StatePaths.lock`.
  package static func read(_ path: String) -> RunLockState {
    var status = stat()
    guard stat(path, &status) == 0 else { return RunLockState(isHeld: false) }
    var state = RunLockState()
    let takenAt = Int64(status.st_mtim.tv_sec) * 1000 + Int64(status.st_mtim.tv_nsec) / 1_000_000
    let lines = Self.content(of: path, limit: 128)?.split(separator: "\n") ?? []
    state.processID = lines.first.flatMap { Int32($0) }
    if lines.count > 1 {
      let words = lines[1].split(separator: " ")
      if words.count == 3, let processID = Int32(words[1]), let takenAt = Int64(words[2]) {
        state.run = Run(processID: processID, takenAt: takenAt)
      }
    } else {
      state.run = Run(processID: state.processID, takenAt: takenAt)
    }
    if let locks = Self.content(of: "/proc/locks", limit: 16 << 20) {
      state.isHeld = Self.isHeld(inode: UInt64(status.st_ino), locks: locks, by: state.processID)
    }
    return state
  }

  /// The content of the lock while a command holds it: its process, and the last run.
  func content(ofCommand processID: Int32) -> String {
    let run = self.run.map { " \($0.processID ?? 0) \($0.takenAt)" } ?? ""
    return "\(processID)\nrun\(run)\n"
  }

  /// Looks for an flock(2) in the text of `/proc/locks` (proc_locks(5)):
  /// `1: FLOCK  ADVISORY  WRITE 4711 08:01:1234567 0 EOF`.
  ///
  /// The device is not compared, since some file systems show another one there than stat(2); the
  /// process is, where the system tells it (0 for one of another container).
  static func isHeld(inode: UInt64, locks: String, by processID: Int32?) -> Bool {
    for line in locks.split(separator: "\n") {
      let fields = line.split(separator: " ")
      // A waiting lock has `->` before its kind.
      guard fields.count >= 6, ["FLOCK", "OFDLCK"].contains(fields[1]),
        let holder = Int32(fields[4]),
        let number = fields[5].split(separator: ":").last, UInt64(number) == inode
      else { continue }
      if holder <= 0 || processID == nil || holder == processID { return true }
    }
    return false
  }

  private static func content(of path: String, limit: Int) -> String? {
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 16384)
    while bytes.count < limit {
      let count = Glibc.read(file, &chunk, chunk.count)
      if count < 0 {
        if errno == EINTR { continue }
        return nil
      }
      if count == 0 { break }
      bytes += chunk[..<count]
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
