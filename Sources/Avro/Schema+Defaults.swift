internal import JSON

extension Schema {
  /// Why a JSON value is no default for a type ("Complex Types", table of field defaults); nil
  /// when it is one. A union takes the default of any of its branches.
  ///
  /// - Parameter budget: comparisons left. Unions inside unions' records are tried branch by
  ///   branch, which a hostile schema makes exponential.
  func mismatch(of value: JSONValue, with type: TypeID, budget: inout Int) -> String? {
    budget -= 1
    guard budget > 0 else { return "takes too long to check" }
    switch (self[type].kind, value.content) {
    case (.null, .null), (.boolean, .boolean), (.string, .string):
      return nil
    case (.int, .number(let text)):
      return Int32(text) == nil ? "is no int" : nil
    case (.long, .number(let text)):
      return Int64(text) == nil ? "is no long" : nil
    case (.float, .number), (.double, .number):
      return nil
    case (.bytes, .string(let text)):
      return text.unicodeScalars.allSatisfy { $0.value < 256 }
        ? nil : "has characters above U+00FF"
    case (.fixed(let size), .string(let text)):
      guard text.unicodeScalars.allSatisfy({ $0.value < 256 }) else {
        return "has characters above U+00FF"
      }
      return text.unicodeScalars.count == size ? nil : "has not \(size) bytes"
    case (.enumeration(let symbols, _), .string(let text)):
      return symbols.contains(text) ? nil : "is not among the symbols"
    case (.array(let items), .array(let values)):
      for part in values {
        if let reason = self.mismatch(of: part, with: items, budget: &budget) { return reason }
      }
      return nil
    case (.map(let values), .object(let members)):
      for member in members {
        let reason = self.mismatch(of: member.value, with: values, budget: &budget)
        if let reason { return reason }
      }
      return nil
    case (.record(let fields), .object):
      for field in fields {
        guard let part = value[field.name] else {
          // A field's own default is checked where it stands.
          if field.defaultValue == nil { return "has no '\(field.name)'" }
          continue
        }
        let reason = self.mismatch(of: part, with: field.type, budget: &budget)
        if let reason { return reason }
      }
      return nil
    case (.union(let branches), _):
      for branch in branches
      where self.mismatch(of: value, with: branch, budget: &budget) == nil {
        return nil
      }
      return "fits no branch of the union"
    case (let kind, _):
      return "is not of type \(kind.label)"
    }
  }
}
