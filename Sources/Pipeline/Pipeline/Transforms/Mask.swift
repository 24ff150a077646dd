internal import Bytes
package import JSON

/// Hides the values of columns:
/// `{"type": "mask", "columns": ["Email", "*Phone*"], "with": "hash", "key": "${MASK_KEY}"}`.
///
/// Columns are selected by name, or by the org's classification of their fields: `{"type": "mask",
/// "classified": {"compliance": ["PII"]}, "with": "redact"}`.
///
/// Null stays null and absent stays absent. Later stages and sinks get only masked values, whatever
/// their source: events, records that were read, and dead letters that are retried.
package final class Mask: ConfiguredTransform {
  package enum Method: String, CaseIterable, Sendable {
    case drop, redact, hash, truncate, year
  }

  /// What replaces a value.
  enum Replacement {
    /// The column is removed.
    case drop
    case redact(text: [UInt8])
    case hash(HashedText)
    /// The first `length` characters.
    case truncate(length: Int)
    case year
  }

  package static let type = "mask"
  package static let schemaDescription =
    "Hides the values of columns. The dead letters of such a pipeline are sealed, or have no payload."

  package struct Options: KeyedObject, Sendable {
    fileprivate var columns: [String] = []
    fileprivate var selector: ClassificationSelector?
    fileprivate var method = Method.drop
    private var key: String?
    private var length: Int?
    private var text = "***"
    fileprivate var missing: ColumnNames.Missing?

    package init() {}

    package static var keys: [Key<Self>] {
      [
        .key(
          "columns", \.columns, .columnNames, Key<Self>.columnsText, example: ["Phone", "*Email*"]),
        .key(
          "classified", \.selector, .classified,
          "Selects columns by the org's data classification, beside columns or instead of them; with "
            + "drop, redact or hash.", example: ["compliance": ["PII"]]),
        .required(
          "with", \.method, .choice(called: "method"),
          "drop: the column is removed; redact: a fixed text; hash: HMAC-SHA-256 under key, 64 "
            + "hexadecimal digits, equal for equal values of any table; truncate: the first length "
            + "characters of a text; year: of a date, a time, or a text that begins with a date."),
        .key(
          "key", \.key, .string(.reference("variable")),
          "hash: variable with the key, at least 16 bytes.", example: "${MASK_KEY}",
          secrecy: .secret),
        .noted(
          "key_file", .string(.reference("path")), "hash: file with the key, instead of key.",
          example: "/run/secrets/mask.key"),
        .key(
          "length", \.length, .integer(in: 1...100_000),
          "truncate: number of characters (Unicode code points) to keep.", example: 3),
        .key("text", \.text, .string(), "redact: the text instead of values.", example: "hidden"),
        .missing(\.missing),
      ]
    }

    package func check(_ reader: JSONReader) {
      let isClassified = reader.has("classified")
      if !isClassified, !reader.has("columns") { reader.report("columns", "is required") }
      // Without a method that is known, nothing is known of its options.
      let method = self.method
      guard reader.any("with")?.string == method.rawValue else { return }
      if isClassified, !method.isForAnyType {
        reader.report(
          "with",
          "\(method.rawValue) is for columns of some types only, and fields that will be classified may have "
            + "any; with \"classified\" use drop, redact or hash")
      }
      let members: [(name: String, method: Method)] = [
        ("key", .hash), ("key_file", .hash), ("length", .truncate), ("text", .redact),
      ]
      for member in members where member.method != method && reader.has(member.name) {
        reader.report(member.name, "belongs to \"with\": \"\(member.method.rawValue)\"")
      }
      if method == .truncate, !reader.has("length") {
        reader.report("length", "is required by truncate")
      }
      guard method == .hash else { return }
      // The configuration reader has put the content of key files into `key`, or has reported them.
      if !reader.has("key"), !reader.has("key_file") {
        reader.report("key", "is required by hash; or set key_file")
      }
      if let key, key.utf8.count < Mask.minKeyByteCount {
        reader.report(
          "key", "needs at least \(Mask.minKeyByteCount) bytes; make one with openssl rand -hex 32")
      }
    }

    fileprivate var replacement: Replacement {
      switch self.method {
      case .drop: .drop
      case .year: .year
      case .redact: .redact(text: Array(self.text.utf8))
      // Without length or key, which has been reported, nothing is shown.
      case .truncate: self.length.map { .truncate(length: $0) } ?? .drop
      case .hash: self.key.map { .hash(HashedText(key: Array($0.utf8))) } ?? .drop
      }
    }
  }

  private static let minKeyByteCount = 16

  // Without the options, which have the key.
  private let columns: ColumnNames
  package let classificationSelector: ClassificationSelector?
  private let method: Method
  private let replacement: Replacement
  private var classification: OrgClassification?
  /// The classification of the fields of all layouts so far.
  private var values = ClassificationValues()
  private var plans = LayoutCache<MaskPlan>()
  private var buffer = ByteBuffer(capacity: 256)

  package init(_ options: Options) {
    self.columns = ColumnNames(options.columns, missing: options.missing, takesPatterns: true)
    self.classificationSelector = options.selector
    self.method = options.method
    self.replacement = options.replacement
  }

  package var namedColumns: NamedColumns? {
    self.columns.names.isEmpty ? nil : self.columns.named(by: Self.type)
  }

  package func begin(_ run: RunValues) { self.classification = run.classification }

  package var hides: String? {
    let names = self.columns.names.sorted().joined(separator: ", ")
    let classes = self.classificationSelector.map { "what the org classifies as \($0.words)" }
    return "\(self.method.rawValue) "
      + [names.isEmpty ? nil : names, classes].compactMap { $0 }.joined(separator: " and ")
  }

  package var unknownClassifications: [String] {
    guard self.columns.missing != .ignore else { return [] }
    return self.classificationSelector?.unknownValues(among: self.values) ?? []
  }

  package func maskedColumns(leading output: RecordLayout) -> [MaskedColumn] {
    (self.plans[output]?.reasons ?? []).map { MaskedColumn($0.column, self.method, $0.reason) }
  }

  package var changesRows: Bool { true }

  package func layout(for input: RecordLayout) throws -> RecordLayout {
    try self.columns.match(input, stage: Self.type)
    try self.columns.guardAgainstRenaming(input, stage: Self.type)
    let plan = try MaskPlan(
      MaskSelection(names: self.columns, classes: try self.classes(for: input)), self.replacement,
      layout: input)
    self.plans.insert(plan, for: plan.output)
    return plan.output
  }

  /// - Throws: `TransformError` when the org was not asked, because a field of unknown
  ///   classification must not be exported.
  private func classes(
    for input: RecordLayout
  ) throws -> (selector: ClassificationSelector, object: ObjectClassification)? {
    guard let selector = self.classificationSelector else { return nil }
    let object = self.classification?.object(input.entity, schemaID: input.schemaID)
    guard let object else {
      throw TransformError(
        .classification,
        "stage \(Self.type): how the fields of \(input.entity) are classified is not known "
          + "(\(input.origin)), and without it nothing is exported")
    }
    self.values.add(object)
    return (selector, object)
  }

  package func knows(_ output: RecordLayout) -> Bool { self.plans[output] != nil }

  package func maskedSlots(of output: RecordLayout) -> Set<Int> {
    Set(self.plans[output]?.columns.map(\.slot) ?? [])
  }

  package func apply(to batch: RecordBatch) throws {
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

  /// - Returns: why the value cannot be masked. The cell then no longer refers to the value either.
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
      // The hash of a diff cannot be compared with the hash of a whole value. An empty diff cannot
      // be applied, so tables read the record again.
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

  /// The redacted text is a value, even if it replaces a diff.
  private func noteValue(
    _ slot: Int, row: Int, of event: RecordBatch.Event, _ batch: RecordBatch
  ) {
    guard batch.row(row).isDiff(slot) else { return }
    var fields = FieldListEdit(of: row, in: batch, RowCharacter(of: event, batch.row(row)))
    fields.note(slot, RecordBatch.Presence.value)
  }
}

extension Mask.Method {
  /// Whether columns of every type can be masked that way.
  fileprivate var isForAnyType: Bool {
    switch self {
    case .drop, .redact, .hash: true
    case .truncate, .year: false
    }
  }
}

extension RecordBatch.Row {
  /// Whether the slot holds a diff of a long text instead of the text (ChangeEvents.md#long-texts).
  func isDiff(_ slot: Int) -> Bool {
    guard let cell = self.value(MetadataSlot.diffFields) else { return false }
    return self.bytes(cell).hasField(inSlot: slot)
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
