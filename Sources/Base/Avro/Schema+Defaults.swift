internal import JSON

extension Schema {
  /// Why a JSON value cannot be the default of a type ("Complex Types", table of field defaults);
  /// nil if it can. A union accepts a default of any of its branches.
  ///
  /// - Parameter budget: the steps left: comparisons, and the work of a comparison in proportion to
  ///   text, symbols or members. Unions inside unions' records are tried branch by branch, which a
  ///   hostile schema could make exponential.
  func mismatch(of value: JSONValue, with type: TypeID, budget: inout Int) -> String? {
    budget -= 1
    guard budget > 0 else { return "takes too long to check" }
    switch (self[type].kind, value.content) {
    case (.null, .null), (.boolean, .boolean), (.string, .string):
      return nil
    case (.int, .number(let text)):
      return Int32(text) == nil ? "is not an int" : nil
    case (.long, .number(let text)):
      return Int64(text) == nil ? "is not a long" : nil
    case (.float, .number), (.double, .number):
      return nil
    case (.bytes, .string(let text)):
      return Self.byteCount(of: text, budget: &budget) == nil ? "has characters above U+00FF" : nil
    case (.fixed(let size), .string(let text)):
      // Each byte takes one or two bytes of UTF-8, so text of another length need not be examined.
      guard text.utf8.count >= size, text.utf8.count / 2 <= size else {
        return "has not \(size) bytes"
      }
      guard let count = Self.byteCount(of: text, budget: &budget) else {
        return "has characters above U+00FF"
      }
      return count == size ? nil : "has not \(size) bytes"
    case (.enumeration(let symbols, _), .string(let text)):
      budget -= symbols.count / 8
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
    case (.record(let fields), .object(let members)):
      budget -= members.count
      guard budget > 0 else { return "takes too long to check" }
      // The parser refuses objects with duplicate names.
      let parts = Dictionary(members.map { ($0.name, $0.value) }) { first, _ in first }
      return self.mismatch(of: parts, with: fields, budget: &budget)
    case (.union(let branches), _):
      for branch in branches
      where self.mismatch(of: value, with: branch, budget: &budget) == nil {
        return nil
      }
      return budget > 0 ? "fits no branch of the union" : "takes too long to check"
    case (let kind, _):
      return "is not of type \(kind.label)"
    }
  }

  private func mismatch(
    of parts: [String: JSONValue], with fields: [Field], budget: inout Int
  ) -> String? {
    for field in fields {
      guard let part = parts[field.name] else {
        // A field's own default is checked separately.
        if field.defaultValue == nil { return "has no '\(field.name)'" }
        continue
      }
      if let reason = self.mismatch(of: part, with: field.type, budget: &budget) { return reason }
    }
    return nil
  }

  /// The number of bytes that a text represents, one per character up to U+00FF; nil if it has
  /// other characters.
  private static func byteCount(of text: String, budget: inout Int) -> Int? {
    budget -= text.utf8.count / 16
    var count = 0
    for scalar in text.unicodeScalars {
      guard scalar.value < 256 else { return nil }
      count += 1
    }
    return count
  }
}
