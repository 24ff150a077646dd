internal import SimulatedOrg

/// Writes FetchResponse messages, framed, straight from the stored bytes.
///
/// Field numbers: TheService.md#wire-format. events = 1, latest_replay_id = 2, rpc_id = 3, pending_num_requested = 4;
/// ConsumerEvent: event = 1, replay_id = 2.
struct FetchResponseBuilder {
  /// No response is larger, unless a single event is (TheService.md#limits).
  static let maxBytes = 3_000_000
  private static let replayFieldBytes = 2 + ReplayPosition.byteCount

  private var bytes: [UInt8] = []
  /// What the next response ends with.
  var suffix: [UInt8] = []

  /// Appends one response with up to `limit` events from `index` on. Returns how many it holds.
  ///
  /// - Parameter damaged: indices of events whose payloads are not to be decodable.
  mutating func append(
    from log: TopicLog, index: Int, limit: Int, in store: EventLog, rpcID: [UInt8], pending: Int,
    damaged: Set<Int>? = nil, to output: inout [UInt8]
  ) -> Int {
    self.bytes.removeAll(keepingCapacity: true)
    var count = 0
    while count < limit, index + count < log.entries.count {
      let entry = log.entries[index + count]
      let size = Int(entry.byteCount) + Self.replayFieldBytes
      if count > 0, self.bytes.count + size + 10 > Self.maxBytes { break }
      WireWriter.appendLength(field: 1, count: size, to: &self.bytes)
      if damaged?.contains(index + count) == true {
        self.bytes.append(contentsOf: Self.damaging(Array(store.bytes(of: entry))))
      } else {
        self.bytes.append(contentsOf: store.bytes(of: entry))
      }
      WireWriter.appendLength(field: 2, count: ReplayPosition.byteCount, to: &self.bytes)
      ReplayPosition.append(entry.replayNumber, to: &self.bytes)
      count += 1
    }
    self.finish(
      latest: log.entries[index + count - 1].replayNumber, rpcID: rpcID, pending: pending - count,
      to: &output)
    return count
  }

  /// A stored event, tag and length included, whose payload is all ones: the first number of the payload
  /// then never ends, and every Avro schema of an event begins with one.
  static func damaging(_ event: [UInt8]) -> [UInt8] {
    var event = event
    func varint(at index: inout Int) -> Int {
      var value = 0
      var shift = 0
      while index < event.count {
        let byte = event[index]
        index += 1
        value |= Int(byte & 0x7f) << shift
        shift += 7
        if byte < 0x80 { break }
      }
      return value
    }
    var index = 1
    _ = varint(at: &index)
    // ID, schema ID and payload, in this order: see `EventPublisher`.
    while index < event.count {
      let isPayload = event[index] == 3 << 3 | 2
      index += 1
      let count = varint(at: &index)
      if isPayload {
        for place in index..<min(event.count, index + count) { event[place] = 0xff }
      }
      index += count
    }
    return event
  }

  /// Appends an empty response.
  mutating func appendKeepalive(
    latest: UInt64, rpcID: [UInt8], pending: Int, to output: inout [UInt8]
  ) {
    self.bytes.removeAll(keepingCapacity: true)
    self.finish(latest: latest, rpcID: rpcID, pending: pending, to: &output)
  }

  private mutating func finish(
    latest: UInt64, rpcID: [UInt8], pending: Int, to output: inout [UInt8]
  ) {
    WireWriter.appendLength(field: 2, count: ReplayPosition.byteCount, to: &self.bytes)
    ReplayPosition.append(latest, to: &self.bytes)
    WireWriter.appendField(3, rpcID, to: &self.bytes)
    if pending > 0 {
      self.bytes.append(4 << 3)
      WireWriter.appendVarint(UInt64(pending), to: &self.bytes)
    }
    self.bytes += self.suffix
    self.suffix.removeAll()
    MessageDeframer.frame(self.bytes, to: &output)
  }
}
