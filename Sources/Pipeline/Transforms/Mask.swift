internal import Bytes
public import JSON

/// Hides the values of columns:
/// `{"type": "mask", "columns": ["Email", "*Phone*"], "with": "hash", "key": "${MASK_KEY}"}`.
///
/// Null stays null and absent stays absent. What reaches the stages and sinks behind is masked wherever it
/// comes from: events, records that were read, and dead letters that are sent again.
public final class Mask: ConfiguredTransform {
  public enum Method: String, CaseIterable, Sendable {
    case drop, redact, hash, truncate, year
  }

  /// What the stage puts in the place of a value.
  enum Replacement {
    /// The column is removed.
    case drop
    case redact(text: [UInt8])
    case hash(HashedText)
    /// The first characters, as many as `length` says.
    case truncate(length: Int)
    case year
  }

  public static let type = "mask"
  public static let schemaDescription =
    "Hides the values of columns. The dead letters of such a pipeline are sealed, or have no payload."
  public static var schemaMembers: [JSONSchema.Member] {
    [
      ColumnNames.listSchemaMember,
      .required(
        "with", .choice(of: Method.self),
        "drop: the column is removed; redact: a fixed text; hash: HMAC-SHA-256 under key, 64 "
          + "hexadecimal digits, equal for equal values of any table; truncate: the first length "
          + "characters of a text; year: of a date, a time, or a text that begins with a date."),
      .optional(
        "key", .reference("variable"), "hash: variable with the key, at least 16 bytes."),
      .optional(
        "key_file", .reference("path"), "hash: file with the key, instead of key."),
      .optional(
        "length", .oneOf([.integer(from: 1, through: Self.maxLength), .reference("variable")]),
        "truncate: number of characters (Unicode code points) to keep."),
      .optional(
        "text", .text(), "redact: the text instead of values.", default: .string(Self.text)),
      ColumnNames.missingSchemaMember,
    ]
  }

  private static let text = "***"
  private static let maxLength = 100_000
  private static let minKeyByteCount = 16

  private let columns: ColumnNames
  private let replacement: Replacement
  private var plans = LayoutCache<MaskPlan>()
  private var buffer = ByteBuffer(capacity: 256)

  public init?(reading reader: JSONReader) {
    let columns = ColumnNames(listIn: reader)
    let method: Method? = reader.choice("with", called: "method", required: true)
    let replacement = Self.replacement(reader, method)
    guard let columns, let replacement else { return nil }
    self.columns = columns
    self.replacement = replacement
  }

  private static func replacement(_ reader: JSONReader, _ method: Method?) -> Replacement? {
    let key = reader.string("key")
    let keyFile = reader.any("key_file")
    let length = reader.integer("length", in: 1...Self.maxLength)
    let text = reader.string("text") ?? Self.text
    guard let method else { return nil }
    let members: [(name: String, method: Method)] = [
      ("key", .hash), ("key_file", .hash), ("length", .truncate), ("text", .redact),
    ]
    for member in members where member.method != method && reader.has(member.name) {
      reader.report(member.name, "belongs to \"with\": \"\(member.method.rawValue)\"")
    }
    switch method {
    case .drop: return .drop
    case .year: return .year
    case .redact: return .redact(text: Array(text.utf8))
    case .truncate:
      if !reader.has("length") { reader.report("length", "is required by truncate") }
      return length.map { .truncate(length: $0) }
    case .hash:
      guard let key else {
        // Whoever reads files has put their content into `key`, or reported them.
        if keyFile == nil, !reader.has("key") {
          reader.report("key", "is required by hash; or set key_file")
        }
        return nil
      }
      guard key.utf8.count >= Self.minKeyByteCount else {
        reader.report(
          "key", "needs at least \(Self.minKeyByteCount) bytes; make one with openssl rand -hex 32")
        return nil
      }
      return .hash(HashedText(key: Array(key.utf8)))
    }
  }

  public var namedColumns: NamedColumns? { self.columns.named(by: Self.type) }

  public var changesRows: Bool { true }

  public func layout(for input: RecordLayout) throws -> RecordLayout {
    try self.columns.match(input, stage: Self.type)
    let plan = try MaskPlan(self.columns, self.replacement, layout: input)
    self.plans.insert(plan, for: plan.output)
    return plan.output
  }

  public func knows(_ output: RecordLayout) -> Bool { self.plans[output] != nil }

  public func maskedSlots(of output: RecordLayout) -> Set<Int> {
    Set(self.plans[output]?.columns.map(\.slot) ?? [])
  }

  public func apply(to batch: RecordBatch) throws {
    guard let plan = self.plans[batch.layout] else {
      preconditionFailure("\(batch.layout.origin): a layout that this stage has not made")
    }
    var redacted: RecordBatch.Range?
    if case .redact(let text) = self.replacement {
      redacted = text.withUnsafeBufferPointer { batch.append($0) }
    }
    for (index, event) in batch.events.enumerated() {
      for row in event.firstRow..<event.firstRow + event.rowCount {
        for column in plan.columns {
          let reason = self.mask(column, row: row, of: event, batch, redacted)
          if let reason {
            batch.refuse(event: index, reason: "column '\(column.name)': \(reason)")
          }
        }
      }
    }
  }

  /// - Returns: why the value cannot be masked; the cell no longer leads to it then either.
  private func mask(
    _ column: MaskPlan.Masked, row number: Int, of event: RecordBatch.Event, _ batch: RecordBatch,
    _ redacted: RecordBatch.Range?
  ) -> String? {
    let row = batch.row(number)
    guard let cell = row.value(column.slot) else { return nil }
    if let redacted {
      row.set(column.slot, to: redacted)
      self.noteValue(column.slot, row: number, of: event, batch)
      return nil
    }
    let isDiff = row.isDiff(column.slot)
    switch self.replacement {
    case .drop, .redact:
      row.presence[column.slot] = RecordBatch.Presence.null
    case .hash(let hash):
      // A diff says nothing that could be compared with the hash of a whole value. Empty, it cannot be
      // applied, so tables have the record read again.
      if isDiff { return self.empty(column.slot, row) }
      self.buffer.removeAll()
      hash.append(cell, column.type, row, lost: batch.nonfinite, to: &self.buffer)
      let range = batch.append(self.buffer.bytes)
      batch.row(number).set(column.slot, to: range)
    case .truncate(let length):
      if isDiff { return self.empty(column.slot, row) }
      if case .enumeration(let symbols) = column.type {
        self.buffer.removeAll()
        self.buffer.append(utf8: symbols[Int(cell)])
        let count = self.buffer.bytes.byteCount(ofCharacters: length)
        let range = batch.append(UnsafeBufferPointer(rebasing: self.buffer.bytes[..<count]))
        batch.row(number).set(column.slot, to: range)
      } else {
        var range = RecordBatch.Range(cell: cell)
        range.count = row.bytes(cell).byteCount(ofCharacters: length)
        row.set(column.slot, to: range)
      }
    case .year:
      guard let year = Year.of(cell, column.type, row), !isDiff else {
        row.presence[column.slot] = RecordBatch.Presence.null
        return "the text does not begin with a date such as 2026-02-17, so it has no year"
      }
      row.set(column.slot, to: UInt64(bitPattern: year))
    }
    return nil
  }

  private func empty(_ slot: Int, _ row: RecordBatch.Row) -> String? {
    row.set(slot, to: RecordBatch.Range(offset: 0, count: 0))
    return nil
  }

  /// The redacted text is a value, also where there was a diff.
  private func noteValue(
    _ slot: Int, row: Int, of event: RecordBatch.Event, _ batch: RecordBatch
  ) {
    guard batch.row(row).isDiff(slot) else { return }
    var fields = FieldListEdit(of: row, in: batch, RowCharacter(of: event, batch.row(row)))
    fields.note(slot, RecordBatch.Presence.value)
  }
}

extension RecordBatch.Row {
  /// Whether the slot holds the changes of a long text and not the text (ChangeEvents.md#long-texts).
  func isDiff(_ slot: Int) -> Bool {
    guard let cell = self.value(MetadataSlot.diffFields) else { return false }
    return self.bytes(cell).hasBit(slot)
  }
}

extension UnsafeBufferPointer<UInt8> {
  /// Bytes of the first characters of UTF-8 text.
  fileprivate func byteCount(ofCharacters count: Int) -> Int {
    var left = count
    for (index, byte) in self.enumerated() where byte & 0xC0 != 0x80 {
      if left == 0 { return index }
      left -= 1
    }
    return self.count
  }
}
