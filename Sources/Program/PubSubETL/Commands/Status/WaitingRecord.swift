internal import Checkpoint
import Glibc
import JSON

/// What the run in progress waits for, beside the checkpoint, for `status`.
///
/// It exists only while the run waits for something, and is valid only while that process holds the lock. It
/// is not state: only `status` reads it, so it is replaced without being synced.
struct WaitingRecord {
  /// Things that are shown; a pipeline has fewer.
  static let maxCount = 1000

  static func store(
    _ waiting: [RetryLedger.Wait], processID: Int32, in paths: StatePaths,
    hiding secrets: SecretMask
  ) throws {
    guard !waiting.isEmpty else { return Self.remove(paths) }
    let json: JSONValue = [
      "pid": .integer(processID), "waiting": .array(waiting.prefix(Self.maxCount).map(\.json)),
    ]
    try paths.replace(paths.waiting, with: json, hiding: secrets, isDurable: false)
  }

  static func remove(_ paths: StatePaths) { _ = unlink(paths.waiting) }

  /// - Parameter lock: of the pipeline.
  /// - Returns: nothing when the run in progress waits for nothing, or there is none.
  static func load(_ paths: StatePaths, lock: RunLockState) -> [RetryLedger.Wait] {
    guard lock.isHeld == true, let text = try? TextFile.read(paths.waiting),
      let json = try? JSONValue(parsing: text), let processID = json["pid"]?.integer,
      lock.processID.map({ Int64($0) == processID }) == true
    else { return [] }
    return (json["waiting"]?.array ?? []).prefix(Self.maxCount).compactMap(RetryLedger.Wait.init)
  }
}
