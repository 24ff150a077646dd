/// Which columns the stage `mask` hides.
struct MaskSelection {
  var names: ColumnNames
  /// The selection by classification and the classification of the object's fields; nil for a stage
  /// that names its columns.
  var classes: (selector: ClassificationSelector, object: ObjectClassification)?

  func reason(for column: Column) -> MaskedColumn.Reason? {
    if let name = self.names.name(for: column) { return .named(name) }
    guard let classes, !column.isMetadata, !column.isComputed else { return nil }
    // A constant has replaced the field.
    if case .constant = column.content { return nil }
    guard let known = classes.object.classification(of: column) else { return .undescribed }
    let terms = classes.selector.terms(of: known)
    return terms.isEmpty ? nil : .classified(terms)
  }
}

/// What the stage `mask` does to the rows of one layout.
struct MaskPlan {
  struct Masked {
    var name: String
    var slot: Int
    /// The type of the values before masking.
    var type: ColumnType
  }

  let output: RecordLayout
  let columns: [Masked]
  /// All hidden columns, in the order of the layout, as they enter the stage.
  let reasons: [(column: String, reason: MaskedColumn.Reason)]

  /// Columns that say who changed a record, and from where. The other metadata columns identify
  /// rows.
  private static let metadata: Set<String> = ["_commit_user", "_change_origin"]

  /// - Throws: `TransformError` for columns that cannot be masked that way.
  init(_ selection: MaskSelection, _ replacement: Mask.Replacement, layout: RecordLayout) throws {
    var output: [Column] = []
    var reasons: [(column: String, reason: MaskedColumn.Reason)] = []
    var masked: [Masked] = []
    for var column in layout.columns {
      // Masking a column twice by classification adds nothing, but a stage may name a masked
      // column.
      let reason = selection.reason(for: column)
      guard let reason, !column.isMasked || reason.isNamed else {
        output.append(column)
        continue
      }
      reasons.append((column.name, reason))
      func refused(_ reason: String) -> TransformError {
        TransformError(
          .maskedColumn,
          "stage \(Mask.type): column '\(column.name)' \(reason) (\(layout.origin))")
      }
      if column.isMetadata, !Self.metadata.contains(column.name) {
        throw refused(
          "identifies or orders rows and cannot be masked; use the stage 'drop' if it is not needed"
        )
      }
      if case .drop = replacement {
        // A field without a column is not exported; a row's metadata is read from its slot.
        if column.isMetadata { masked += Self.masked(column) }
        continue
      }
      guard let type = Self.type(of: column, replacement) else {
        throw refused(Self.obstacle(to: replacement, in: column))
      }
      masked += Self.masked(column)
      switch column.content {
      case .constant: break
      case .slot(let slot, _), .record(let slot, _, _): column.content = .slot(slot, type)
      }
      column.salesforceType = nil
      column.isMasked = true
      output.append(column)
    }
    self.columns = masked
    self.reasons = reasons
    self.output = layout.with(columns: output)
  }

  private static func masked(_ column: Column) -> [Masked] {
    switch column.content {
    case .constant: []
    case .slot(let slot, let type): [Masked(name: column.name, slot: slot, type: type)]
    case .record(let slot, _, _): [Masked(name: column.name, slot: slot, type: .json)]
    }
  }

  /// The type of the masked column; nil when its values cannot be masked that way.
  private static func type(of column: Column, _ replacement: Mask.Replacement) -> ColumnType? {
    switch (replacement, column.content) {
    case (_, .constant): return nil
    case (.redact, _): return .string
    case (_, .record): return nil
    case (.drop, .slot): return .string
    case (.hash, .slot(_, let type)): return ValueText.hasText(type) ? .string : nil
    case (.truncate, .slot(_, let type)): return type.isText ? .string : nil
    case (.year, .slot(_, let type)): return Year.isKnown(of: type) ? .int32 : nil
    }
  }

  private static func obstacle(to replacement: Mask.Replacement, in column: Column) -> String {
    switch column.content {
    case .constant:
      "is a constant of the stage 'set'; change it there, or remove it with drop"
    case .record: "is a record; flatten it first, or use drop or redact"
    case .slot(_, let type):
      switch replacement {
      case .truncate: "is \(type.words), and truncate is for text; use another method"
      case .year: "is \(type.words), which has no year; use another method"
      default: "is \(type.words), which has no text to hash; use drop or redact"
      }
    }
  }
}

extension MaskedColumn.Reason {
  fileprivate var isNamed: Bool { if case .named = self { true } else { false } }
}

extension ColumnType {
  /// Whether values are text whose first characters can be kept.
  var isText: Bool {
    switch self {
    case .string, .uuid, .enumeration: true
    default: false
    }
  }
}
