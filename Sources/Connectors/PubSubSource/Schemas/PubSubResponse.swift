internal import Glibc
package import Pipeline
internal import PubSubAPI

/// A response together with the schemas of its events.
package struct PubSubResponse: SourceResponse {
  let view: FetchResponseView
  let schemas: ResponseSchemas

  package var eventCount: Int { self.view.events.count }
  package var latestReplayID: ReplayID { ReplayID(Array(self.view[self.view.latestReplayIDField])) }
  package var pendingCredit: Int { self.view.pendingCredit }
}

extension PubSubResponse {
  /// Appends events up to the first that has another schema than the first of them or cannot be
  /// decoded, and none once the batch is large.
  func decode(_ events: Range<Int>, with decoder: AvroEventDecoder, into batch: RecordBatch) {
    self.view.bytes.withUnsafeBufferPointer { bytes in
      for index in events {
        let event = self.view.events[index]
        let eventID = UnsafeBufferPointer(rebasing: bytes[event.eventID.range])
        guard !batch.isLarge, self.schemas.areEqual(index, events.lowerBound),
          EventLimits.isEventID(eventID)
        else { return }
        do throws(EventDecodingError) {
          try decoder.decode(
            eventID: eventID, replayID: UnsafeBufferPointer(rebasing: bytes[event.replayID.range]),
            payload: UnsafeBufferPointer(rebasing: bytes[event.payload.range]), into: batch)
        } catch {
          // Decoded again alone, where the error is handled.
          return
        }
      }
    }
  }
}

/// The schemas of a response's events, found once: from here on, no event's schema ID is read.
struct ResponseSchemas: Sendable {
  /// Each schema once; most responses have only one.
  private(set) var distinct: [ResolvedSchema] = []
  /// For each event so far, the index of its schema; -1 for an event without a valid ID.
  private var indices: [Int] = []

  mutating func reserveCapacity(_ eventCount: Int) { self.indices.reserveCapacity(eventCount) }

  /// Nil for an event without a valid schema ID.
  subscript(event: Int) -> ResolvedSchema? {
    let index = self.indices[event]
    return index < 0 ? nil : self.distinct[index]
  }

  /// Whether two events have the same schema, or both have no valid schema ID.
  func areEqual(_ event: Int, _ other: Int) -> Bool {
    self.indices[event] == self.indices[other]
  }

  /// Takes an event of a schema that an earlier one has.
  ///
  /// - Returns: false if there is none.
  mutating func takeKnown(_ id: UnsafeBufferPointer<UInt8>) -> Bool {
    guard let index = self.distinct.lastIndex(where: { Self.isSame($0.id, id) }) else {
      return false
    }
    self.indices.append(index)
    return true
  }

  mutating func take(_ schema: ResolvedSchema) {
    self.indices.append(self.distinct.count)
    self.distinct.append(schema)
  }

  mutating func takeInvalid() { self.indices.append(-1) }

  /// Called for each event: `elementsEqual` would compare byte by byte.
  private static func isSame(_ id: [UInt8], _ other: UnsafeBufferPointer<UInt8>) -> Bool {
    guard id.count == other.count, let start = other.baseAddress else {
      return id.isEmpty && other.isEmpty
    }
    return memcmp(id, start, id.count) == 0
  }
}
