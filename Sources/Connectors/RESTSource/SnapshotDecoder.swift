internal import Bytes
package import Pipeline
package import SalesforceREST

/// The values of one record in the order of `SnapshotPlan.fields`; empty for null.
package protocol RecordTexts: ~Copyable {
  var count: Int { get }
  subscript(_ index: Int) -> UnsafeRawBufferPointer { get }
}

extension CSVRow: RecordTexts {}

/// Decodes records from REST and Bulk into rows of their events' layout.
///
/// A row is an image of the fields that were read: null for an empty field, and absent for a field
/// that the plan does not read.
package struct SnapshotDecoder {
  /// The identity of a row.
  package struct Identity {
    /// Index in the batch.
    package var row: Int
    /// In the batch's arena, 18 characters.
    package var recordID: RecordBatch.Range
    /// `SystemModstamp`, milliseconds since 1970.
    package var stamp: Int64
  }

  package let plan: SnapshotPlan
  /// The latest plausible stamp, in milliseconds since 1970; nil if the org's clock is unknown.
  /// With a stamp in the future, later changes would count as older than the read.
  package var latestStamp: Int64?
  private let keyPrefix: [UInt8]

  package init(_ plan: SnapshotPlan, latestStamp: Int64? = nil) {
    self.plan = plan
    self.latestStamp = latestStamp
    self.keyPrefix = Array((plan.keyPrefix ?? "").utf8)
  }

  /// Adds a row to the batch, without metadata except the record ID.
  ///
  /// After an error the batch has an additional row that must not be used.
  package func decode(
    _ texts: borrowing some RecordTexts & ~Copyable, into batch: RecordBatch
  ) throws(SnapshotRowError) -> Identity {
    guard texts.count == self.plan.fields.count else {
      throw SnapshotRowError(
        field: nil, "\(texts.count) values instead of \(self.plan.fields.count)")
    }
    let id = texts[SnapshotPlan.idField]
    guard id.count == 18, id.allSatisfy(\.isAlphanumeric) else {
      throw SnapshotRowError(field: "Id", "not a record ID of 18 characters")
    }
    guard Self.hasChecksum(id), id.starts(with: self.keyPrefix) else {
      throw SnapshotRowError(field: "Id", "not the ID of a record of \(self.plan.object)")
    }
    guard let stamp = UTCTime.timestamp(texts[SnapshotPlan.stampField]),
      CommitTime.range.contains(stamp)
    else { throw SnapshotRowError(field: self.plan.stampName, "not a usable time") }
    if let latestStamp, stamp > latestStamp {
      throw SnapshotRowError(field: self.plan.stampName, "later than the org's own clock")
    }
    let row = batch.addRow()
    let recordID = batch.append(id.bindMemory(to: UInt8.self))
    batch.row(row).set(MetadataSlot.recordID, to: recordID)
    for compound in self.plan.compounds {
      batch.row(row).presence[compound.slot] = RecordBatch.Presence.null
    }
    for step in self.plan.steps { try self.take(step, texts, row, batch) }
    self.chooseBranches(texts, batch.row(row))
    return Identity(row: row, recordID: recordID, stamp: stamp)
  }

  private func take(
    _ step: SnapshotPlan.Step, _ texts: borrowing some RecordTexts & ~Copyable, _ row: Int,
    _ batch: RecordBatch
  ) throws(SnapshotRowError) {
    let text = texts[step.field]
    guard !text.isEmpty else {
      batch.row(row).presence[step.slot] = RecordBatch.Presence.null
      return
    }
    if step.type == .string {
      guard Self.isUTF8(text) else {
        throw SnapshotRowError(field: self.plan.fields[step.field], "not valid UTF-8")
      }
      let range = batch.append(text.bindMemory(to: UInt8.self))
      batch.row(row).set(step.slot, to: range)
    } else {
      guard let cell = TextValue.cell(text, as: step.type) else {
        throw SnapshotRowError(
          field: self.plan.fields[step.field], "not a value of the field's type, \(step.type.words)"
        )
      }
      batch.row(row).set(step.slot, to: cell)
    }
    if let compound = step.compound {
      batch.row(row).presence[self.plan.compounds[compound].slot] = RecordBatch.Presence.value
    }
  }

  /// Chooses the branch of each union: a name is a text or a record, not both.
  private func chooseBranches(
    _ texts: borrowing some RecordTexts & ~Copyable, _ row: RecordBatch.Row
  ) {
    for (index, compound) in self.plan.compounds.enumerated() {
      guard let scalar = compound.scalar else { continue }
      let isPerson = compound.personField.map { !texts[$0].isEmpty } ?? false
      if isPerson {
        row.presence[scalar] = RecordBatch.Presence.null
        continue
      }
      for step in self.plan.steps where step.compound == index {
        row.presence[step.slot] = RecordBatch.Presence.null
      }
      // The field's presence is that of its chosen branch.
      row.presence[compound.slot] = row.presence[scalar]
    }
  }

  /// The last three characters of an ID say which of the others are uppercase letters: one bit
  /// each, in groups of five.
  private static func hasChecksum(_ id: UnsafeRawBufferPointer) -> Bool {
    for group in 0..<3 {
      var bits: UInt8 = 0
      for index in 0..<5 {
        let byte = id[group * 5 + index]
        if (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) { bits |= 1 << index }
      }
      let letter = bits < 26 ? UInt8(ascii: "A") + bits : UInt8(ascii: "0") + bits - 26
      guard id[15 + group] == letter else { return false }
    }
    return true
  }

  private static func isUTF8(_ text: UnsafeRawBufferPointer) -> Bool {
    let bytes = text.bindMemory(to: UInt8.self)
    do throws(UTF8.ValidationError) {
      _ = try UTF8Span(validating: bytes.span)
      return true
    } catch {
      return false
    }
  }
}

/// A record from REST or Bulk that cannot become a row. Names the field, never its value.
package struct SnapshotRowError: Error, Sendable, Equatable, CustomStringConvertible {
  /// Nil if the row as a whole is wrong.
  package var field: String?
  package var reason: String

  init(field: String?, _ reason: String) {
    self.field = field
    self.reason = reason
  }

  package var description: String { self.field.map { "\($0): \(self.reason)" } ?? self.reason }
}
