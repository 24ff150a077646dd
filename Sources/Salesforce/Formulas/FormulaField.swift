/// A field that a formula refers to.
package struct FormulaField: Sendable, Equatable {
  package enum Content: Sendable, Equatable {
    /// A column, as SQL text. IDs have 18 characters, and percentages are as REST shows them.
    case column(String)
    /// Another formula. Its fields begin at `path`.
    case formula(Formula, path: [String])
  }

  package var content: Content
  package var type: FormulaType
  /// Some choices have labels that differ from their values, as translations do.
  package var hasOtherLabels = false

  package init(_ content: Content, _ type: FormulaType, hasOtherLabels: Bool = false) {
    self.content = content
    self.type = type
    self.hasOtherLabels = hasOtherLabels
  }
}

/// A formula as describe has it.
package struct Formula: Sendable, Equatable {
  package var text: String
  /// The type of the result.
  package var type: FormulaType
  /// Numbers of empty fields are zero (`formulaTreatNullNumberAsZero`).
  package var treatsBlankAsZero: Bool

  package init(_ text: String, _ type: FormulaType, treatsBlankAsZero: Bool) {
    self.text = text
    self.type = type
    self.treatsBlankAsZero = treatsBlankAsZero
  }
}

/// The types of values in formulas.
package enum FormulaType: String, Sendable {
  case text, number, percent, boolean, date, time, id, picklist
  case dateTime = "date and time"
  case multiPicklist = "multi-select picklist"

  /// - Parameter type: as describe names it.
  package init?(described type: String) {
    switch type {
    case "string", "textarea", "email", "phone", "url", "combobox": self = .text
    case "double", "currency", "int", "long": self = .number
    case "percent": self = .percent
    case "boolean": self = .boolean
    case "date": self = .date
    case "datetime": self = .dateTime
    case "time": self = .time
    case "id", "reference": self = .id
    case "picklist": self = .picklist
    case "multipicklist": self = .multiPicklist
    default: return nil
    }
  }
}

/// The fields that formulas can refer to.
package protocol FormulaFields {
  /// - Parameter path: the names between the points, from the object that has the formula. Their
  ///   letters may differ in case from the API names.
  /// - Throws: `FormulaRefusal` for a field that is not there.
  func field(at path: [String]) throws(FormulaRefusal) -> FormulaField
}
