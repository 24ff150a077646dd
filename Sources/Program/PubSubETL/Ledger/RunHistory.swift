internal import Bytes
internal import Checkpoint
internal import DurableFiles
import JSON

/// The runs and verdicts of a ledger, the newest last.
struct RunHistory {
  enum Item: Sendable, Equatable {
    case run(RunRecord)
    /// It has begun, and holds the lock.
    case running(RunBeginning)
    /// It has begun and left no report: it was killed, or the machine went down.
    case unreported(RunBeginning)
    case verify(VerifyRecord)
  }

  var items: [Item] = []
  /// Lines of the ledger that were skipped.
  var damagedCount = 0

  /// - Parameter lock: of the pipeline, read before the content.
  init(_ content: RunLedger.Content, lock: RunLockState) {
    self.damagedCount = content.damagedCount
    var ended: Set<RunID> = []
    var last: RunID?
    for entry in content.entries {
      switch entry {
      case .began(let beginning): last = beginning.id
      case .run(let record): ended.insert(record.beginning.id)
      case .verify: break
      }
    }
    self.items = content.entries.compactMap { entry in
      switch entry {
      case .run(let record): return .run(record)
      case .verify(let record): return .verify(record)
      case .began(let beginning):
        if ended.contains(beginning.id) { return nil }
        let isRunning =
          beginning.id == last && lock.isHeld != false && lock.processID == beginning.processID
        return isRunning ? .running(beginning) : .unreported(beginning)
      }
    }
  }

  /// Reads the ledger of a pipeline; takes no lock.
  ///
  /// - Throws: `RunFailure` if there is a ledger that cannot be read.
  static func read(_ paths: StatePaths) throws(RunFailure) -> RunHistory {
    // The lock first: a run that ends in between has left its line by then.
    let lock = RunLockState.read(paths.lock)
    do throws(FileSystemError) {
      return RunHistory(try RunLedger(paths: paths).read(), lock: lock)
    } catch {
      throw RunFailure(.checkpointIO, "the ledger of runs cannot be read: \(error)")
    }
  }

  /// What to say about lines that were skipped; nil if there are none.
  func remark(_ paths: StatePaths) -> String? {
    guard self.damagedCount > 0 else { return nil }
    return "\(Phrase.count(self.damagedCount, "line")) of \(paths.runs) "
      + "\(self.damagedCount == 1 ? "is" : "are") damaged or from a newer version, and not shown"
  }
}

extension RunHistory.Item {
  /// Milliseconds since 1970.
  var beganAt: Int64 {
    switch self {
    case .run(let record): record.beginning.beganAt
    case .running(let beginning), .unreported(let beginning): beginning.beganAt
    case .verify(let record): record.beganAt
    }
  }

  /// The line of the ledger, with the state of runs that have no report.
  var json: JSONValue {
    switch self {
    case .run(let record): LedgerEntry.run(record).json
    case .verify(let record): LedgerEntry.verify(record).json
    case .running(let beginning): Self.json(beginning, "running")
    case .unreported(let beginning): Self.json(beginning, "no_report")
    }
  }

  private static func json(_ beginning: RunBeginning, _ state: String) -> JSONValue {
    let members = LedgerEntry.began(beginning).json.members ?? []
    return JSONValue(
      .object([JSONMember("kind", .string(state))] + members.filter { $0.name != "kind" }))
  }
}
