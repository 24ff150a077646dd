import Foundation
import JSON
import Pipeline

@testable import PostgresSink

/// What the runner does with a store, when it has nothing else to do.
extension TableStore {
  /// Asks again for as long as the sink says so.
  @discardableResult
  func ask(_ body: () throws -> StoreAnswer) throws -> [RefusedEvent] {
    while true {
      switch try body() {
      case .done: return []
      case .refused(let events): return events
      case .unavailable(let outage):
        // The sink names the time; a runner has other work until then.
        Thread.sleep(forTimeInterval: max(0, (outage.retryAt - .now) / .seconds(1)))
      }
    }
  }

  func take(_ batch: RecordBatch) throws {
    if !self.isReady(for: batch.layout) {
      try self.ask { try self.makeReady(for: batch.layout) }
    }
    try self.write(batch)
  }

  func commitPatiently() throws {
    try self.ask { try self.commit() }
    try self.complete()
  }
}

extension PostgresSink {
  func sealAndPrepare(
    _ topics: [String: JSONValue], letters: [DeadLetter] = []
  ) throws -> [RefusedEvent] {
    if self.sealed == nil { try self.seal(isLast: false) }
    return try self.ask { try self.prepare(topics, letters: letters) }
  }
}
