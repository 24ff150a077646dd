// The truth file: the published events, for comparison with an exporter's output.
//
// NDJSON, UTF-8, LF. One line per topic and event delivered there, in the topic's order; lines of different
// topics alternate. Written from the values in memory before they are encoded. Keys, always all of them:
//
//   topic         string   "/data/AccountChangeEvent"
//   replay_id     string   20 lower-case hex digits
//   event_id      string   UUID (events of one split change share it; recordIds differ)
//   schema_id     string
//   kind          string   "change", "gap", "overflow", "wildcard", "event" (platform event)
//   entity        string   API name: "Account", "Station__c", "Order_Event__e"
//   published_at  integer  epoch ms
//   header        object, or null for platform events: entityName, recordIds (array), changeType (symbol),
//                 changeOrigin, transactionKey, sequenceNumber, commitTimestamp (epoch ms), commitNumber
//                 (integer, more than 53 bits), commitUser, and nulledFields, diffFields, changedFields as
//                 arrays of names: top-level fields in schema order, then "Parent.Child" in schema order
//   fields        object   values that are not null, in schema order, unflattened: a compound field is an
//                 object of its children that are not null ({} if it is present and has none).
//                 Account.Name is a string or an object. integers and longs as integers (dates: epoch
//                 ms), doubles in shortest round-trip form, "NaN", "Infinity", "-Infinity" as strings.
//
// Events published by clients (Publish, PublishStream) have the same form.

internal import Glibc

/// Writes the truth file. Confined to one thread at a time by its owner.
package final class TruthWriter {
  private let descriptor: Int32
  private let path: String
  private var buffer: [UInt8] = []
  private var body: [UInt8] = []

  /// Replaces a file that exists.
  package init(path: String) throws {
    self.path = path
    // Links are followed where the system makes them: /dev/stdout.
    let follows = path.hasPrefix("/dev/") ? 0 : O_NOFOLLOW
    self.descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | follows, 0o644)
    if self.descriptor < 0 { throw SimulatorError.system("open(\"\(path)\")") }
    self.buffer.reserveCapacity(1 << 20)
  }

  deinit { close(self.descriptor) }

  /// Writes what is buffered.
  func flush() throws {
    var start = 0
    while start < self.buffer.count {
      let written = self.buffer.withUnsafeBytes {
        write(self.descriptor, $0.baseAddress?.advanced(by: start), $0.count - start)
      }
      if written < 0 {
        if errno == EINTR { continue }
        throw SimulatorError.system("write(\"\(self.path)\")")
      }
      start += written
    }
    self.buffer.removeAll(keepingCapacity: true)
  }

  /// Takes the values of an event, for the lines that follow.
  func begin(_ image: EventImage, id: [UInt8], at time: Int64) {
    self.body.removeAll(keepingCapacity: true)
    self.body += "\",\"event_id\":".utf8
    JSONText.append(id[...], to: &self.body)
    self.body += ",\"schema_id\":".utf8
    JSONText.append(image.schema.idBytes[...], to: &self.body)
    self.body += ",\"kind\":\"\(image.kind.rawValue)\",\"entity\":\"\(image.entity.entity)\"".utf8
    self.body += ",\"published_at\":\(time),\"header\":".utf8
    if image.schema.category == .changeEvent {
      self.appendHeader(image)
    } else {
      self.body += "null".utf8
    }
    self.body += ",\"fields\":{".utf8
    image.appendFields(to: &self.body)
    self.body += "}}\n".utf8
  }

  /// Writes the line of the event begun last for one topic.
  func line(topic: String, replayNumber: UInt64) throws {
    self.buffer += "{\"topic\":\"".utf8
    self.buffer += topic.utf8
    self.buffer += "\",\"replay_id\":\"".utf8
    JSONText.appendHex(replayNumber, to: &self.buffer)
    self.buffer += "0000".utf8
    self.buffer += self.body
    if self.buffer.count >= 1 << 20 { try self.flush() }
  }

  private func appendHeader(_ image: EventImage) {
    let header = image.header
    self.body += "{\"entityName\":\"\(image.entity.entity)\",\"recordIds\":[".utf8
    for (index, id) in header.recordIDs.enumerated() {
      if index > 0 { self.body.append(UInt8(ascii: ",")) }
      JSONText.append(id[...], to: &self.body)
    }
    self.body += "],\"changeType\":\"\(header.changeType.symbol)\",\"changeOrigin\":".utf8
    JSONText.append(header.changeOrigin[...], to: &self.body)
    self.body += ",\"transactionKey\":".utf8
    JSONText.append(header.transactionKey[...], to: &self.body)
    self.body += ",\"sequenceNumber\":\(header.sequenceNumber)".utf8
    self.body += ",\"commitTimestamp\":\(header.commitTimestamp)".utf8
    self.body += ",\"commitNumber\":\(header.commitNumber),\"commitUser\":".utf8
    JSONText.append(header.commitUser[...], to: &self.body)
    self.appendNames("nulledFields", header.nulled, image)
    self.appendNames("diffFields", header.diff, image)
    self.appendNames("changedFields", header.changed, image)
    self.body += "}".utf8
  }

  private func appendNames(_ key: String, _ slots: [Int], _ image: EventImage) {
    self.body += ",\"\(key)\":[".utf8
    let known = slots.filter { image.schema.positions[$0] != nil }.sorted()
    var isFirst = true
    for isTop in [true, false] {
      for slot in known where (image.entity.slots[slot].parent == nil) == isTop {
        if !isFirst { self.body.append(UInt8(ascii: ",")) }
        isFirst = false
        self.body.append(UInt8(ascii: "\""))
        self.body += image.entity.slots[slot].path.utf8
        self.body.append(UInt8(ascii: "\""))
      }
    }
    self.body.append(UInt8(ascii: "]"))
  }
}
