/// A record of the org that does not become a row of a copy, and why.
package struct OmittedRecord: Sendable, Equatable {
  package enum Kind: String, Sendable {
    /// A condition of a stage leaves it out.
    case leftOut = "left_out"
    /// A stage cannot process it.
    case refused
    /// A value cannot be read or stored.
    case unreadable
  }

  package var kind: Kind
  /// Nil if the ID itself is invalid.
  package var recordID: String?
  /// `SystemModstamp`, milliseconds since 1970; nil if unusable.
  package var stamp: Int64?
  /// The reason, without values; empty for `leftOut`.
  package var reason: String

  package init(_ kind: Kind, recordID: String?, stamp: Int64?, reason: String = "") {
    self.kind = kind
    self.recordID = recordID
    self.stamp = stamp
    self.reason = reason
  }

  package init(_ kind: Kind, _ record: UnreadableRecord) {
    self.init(kind, recordID: record.recordID, stamp: record.stamp, reason: record.reason)
  }
}

extension RecordBatch {
  /// The records that were read and that stages have left out of the batch.
  package var leftOutRecords: [OmittedRecord] {
    self.events.lazy.filter { $0.rowCount == 0 }.map { event in
      OmittedRecord(.leftOut, recordID: self.recordID(of: event), stamp: event.commitTimestamp)
    }
  }

  /// The ID of an event's first record; nil if it has none.
  package func recordID(of event: Event) -> String? {
    var joined: [UInt8] = []
    self.appendRecordIDs(of: event, to: &joined)
    let id = joined.prefix { $0 != UInt8(ascii: ",") }
    return id.isEmpty ? nil : String(decoding: id, as: UTF8.self)
  }
}
