import Pipeline

/// Stages as simple code: a row is a dictionary, and every rule of the documentation stands here once more.
struct ReferenceRow {
  var kind: EventKind
  var changeType: String
  var recordID: String
  /// What the row says of each column; columns that are not there are absent.
  var cells: [String: CellValue]
  /// Names in `_changed_fields` and `_nulled_fields`.
  var changed: Set<String> = []
  var nulled: Set<String> = []

  var isUpdate: Bool { self.kind == .change && self.changeType == "UPDATE" }

  /// What an expression sees.
  func seen(_ column: String) -> CellValue {
    let value = self.cells[column] ?? .absent
    if value == .absent, self.kind == .event || self.kind == .change && !self.isUpdate {
      return .null
    }
    return value
  }
}

/// What an expression comes to.
enum ReferenceResult: Equatable {
  case value(CellValue)
  case absent, nullOrdering, failure
}

struct ReferenceColumn {
  var name: String
  var type: ColumnType
}

/// A stage as JSON, and what it does to columns and rows.
struct ReferenceStage {
  enum Fate { case kept, leftOut, refused }

  var json: String
  var columns: ([ReferenceColumn]) -> [ReferenceColumn]
  var apply: (inout ReferenceRow) -> Fate
}

/// An expression as text, and what it does.
struct ReferenceExpression {
  var text: String
  var value: (ReferenceRow) -> ReferenceResult

  /// `Name >= number`
  static func atLeast(_ column: String, _ text: String, _ limit: Double) -> Self {
    Self(text: "\(column) >= \(text)") { row in
      switch row.seen(column) {
      case .absent: .absent
      case .null: .nullOrdering
      case .int(let value): .value(.bool(Double(value) >= limit))
      case .double(let value): .value(.bool(value >= limit))
      case .bool, .text: .failure
      }
    }
  }

  static func equals(_ column: String, _ word: String) -> Self {
    Self(text: "\(column) == '\(word)'") { row in
      let value = row.seen(column)
      return value == .absent ? .absent : .value(.bool(value == .text(word)))
    }
  }

  static func isNull(_ column: String) -> Self {
    Self(text: "\(column) == null") { row in
      let value = row.seen(column)
      return value == .absent ? .absent : .value(.bool(value == .null))
    }
  }

  static func has(_ column: String) -> Self {
    Self(text: "has(row.\(column))") { .value(.bool($0.seen(column) != .absent)) }
  }

  static func column(_ column: String) -> Self {
    Self(text: column) { row in
      let value = row.seen(column)
      return value == .absent ? .absent : .value(value)
    }
  }

  static func plus(_ column: String, _ number: Int) -> Self {
    Self(text: "\(column) + \(number)") { row in
      switch row.seen(column) {
      case .absent: .absent
      case .int(let value): .value(.int(value + Int64(number)))
      case .null, .bool, .double, .text: .failure
      }
    }
  }

  static func exclaimed(_ column: String) -> Self {
    Self(text: "\(column) + '!'") { row in
      switch row.seen(column) {
      case .absent: .absent
      case .text(let text): .value(.text(text + "!"))
      case .null, .bool, .int, .double: .failure
      }
    }
  }

  static func and(_ left: Self, _ right: Self) -> Self { .logical(left, "&&", right, false) }
  static func or(_ left: Self, _ right: Self) -> Self { .logical(left, "||", right, true) }

  private static func logical(
    _ left: Self, _ word: String, _ right: Self, _ deciding: Bool
  ) -> Self {
    Self(text: "(\(left.text)) \(word) (\(right.text))") { row in
      let (left, right) = (left.value(row), right.value(row))
      let decides = ReferenceResult.value(.bool(deciding))
      if left == decides || right == decides { return decides }
      // With the column the result might be another.
      if left == .absent || right == .absent { return .absent }
      for side in [left, right] where side == .nullOrdering || side == .failure { return side }
      let negation = ReferenceResult.value(.bool(!deciding))
      return left == negation && right == negation ? negation : .failure
    }
  }
}

extension ReferenceStage {
  static func filter(_ condition: ReferenceExpression, keepsAbsent: Bool) -> Self {
    let absent = keepsAbsent ? "keep" : "drop"
    return Self(
      json: #"{"type":"filter","where":"\#(condition.text)","absent":"\#(absent)"}"#,
      columns: { $0 },
      apply: { row in
        if row.kind == .overflow { return .kept }
        switch condition.value(row) {
        case .value(.bool(let isTrue)): return isTrue ? .kept : .leftOut
        case .value(.null), .nullOrdering: return .leftOut
        case .absent: return keepsAbsent ? .kept : .leftOut
        case .value, .failure: return .refused
        }
      })
  }

  static func set(
    _ name: String, _ type: ColumnType, _ expression: ReferenceExpression
  ) -> Self {
    Self(
      json: #"{"type":"set","columns":{"\#(name)":"\#(expression.text)"}}"#,
      columns: { columns in
        var columns = columns
        if let place = columns.firstIndex(where: { $0.name == name }) {
          columns[place].type = type
        } else {
          columns.append(ReferenceColumn(name: name, type: type))
        }
        return columns
      },
      apply: { row in
        if row.kind == .overflow {
          row.cells[name] = .absent
          return .kept
        }
        let value: CellValue
        switch expression.value(row) {
        case .value(.null): value = row.seen("") == .absent ? .null : .absent
        case .value(let result): value = result
        case .absent: value = .absent
        case .nullOrdering, .failure: return .refused
        }
        row.cells[name] = value
        if row.isUpdate {
          row.changed.remove(name)
          row.nulled.remove(name)
          if value != .absent { row.changed.insert(name) }
          if value == .null { row.nulled.insert(name) }
        }
        return .kept
      })
  }

  static func rename(_ old: String, _ new: String) -> Self {
    Self(
      json: #"{"type":"rename","columns":{"\#(old)":"\#(new)"}}"#,
      columns: { $0.map { ReferenceColumn(name: $0.name == old ? new : $0.name, type: $0.type) } },
      apply: { row in
        row.cells[new] = row.cells.removeValue(forKey: old)
        if row.changed.remove(old) != nil { row.changed.insert(new) }
        if row.nulled.remove(old) != nil { row.nulled.insert(new) }
        return .kept
      })
  }

  static func drop(_ name: String) -> Self {
    Self(
      json: #"{"type":"drop","columns":["\#(name)"]}"#,
      columns: { $0.filter { $0.name != name } },
      apply: { row in
        row.cells[name] = nil
        row.changed.remove(name)
        row.nulled.remove(name)
        return .kept
      })
  }
}
