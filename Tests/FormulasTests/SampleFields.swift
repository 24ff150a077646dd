@testable import Formulas

/// Fields with values of their own.
struct SampleFields: FormulaFields {
  var fields: [String: FormulaField] = [:]

  init() {
    func add(_ name: String, _ type: FormulaType, _ sql: String, _ hasOtherLabels: Bool = false) {
      self.fields[name.lowercased()] = FormulaField(
        .column(sql), type, hasOtherLabels: hasOtherLabels)
    }
    add("Amount", .number, "1234.5::numeric")
    add("Debt", .number, "-2.5::numeric")
    add("Zero", .number, "0::numeric")
    add("NoNumber", .number, "NULL::numeric")
    add("Probability", .percent, "25::numeric")
    add("Name", .text, "'O''Neil\\ Ünal'::text")
    add("NoText", .text, "NULL::text")
    add("StageName", .picklist, "'Won'::text")
    add("NoStage", .picklist, "NULL::text")
    add("Translated", .picklist, "'Won'::text", true)
    add("Hobbies", .multiPicklist, "ARRAY['Golf', 'Chess']")
    add("CloseDate", .date, "DATE '2024-01-31'")
    add("NoDate", .date, "NULL::date")
    add("CreatedDate", .dateTime, "TIMESTAMPTZ '2024-01-30 18:00:00+00'")
    add("Opening", .time, "TIME '08:30:15.25'")
    add("IsWon", .boolean, "true")
    add("NoFlag", .boolean, "NULL::boolean")
    add("OwnerId", .id, "'005000000000001AAA'::text")
  }

  mutating func add(_ name: String, _ formula: Formula) {
    self.fields[name.lowercased()] = FormulaField(.formula(formula, path: []), formula.type)
  }

  func field(at path: [String]) throws(FormulaRefusal) -> FormulaField {
    let name = path.joined(separator: ".")
    guard let field = self.fields[name.lowercased()] else {
      throw FormulaRefusal("field \(name) is not there")
    }
    return field
  }
}
