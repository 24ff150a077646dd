/// A column that the stage `mask` hides, and why.
package struct MaskedColumn: Sendable, Equatable {
  package enum Reason: Sendable, Equatable {
    /// The configuration names it, by this name or pattern.
    case named(String)
    /// For example, `compliance PII`.
    case classified([String])
    /// The org does not describe the field: it is deleted, renamed, or hidden from the user.
    case undescribed
  }

  /// The column as it enters the stage.
  package var column: String
  package var method: Mask.Method
  package var reason: Reason
  /// Place of the stage in its chain, from 0.
  package var stage = 0

  init(_ column: String, _ method: Mask.Method, _ reason: Reason) {
    (self.column, self.method, self.reason) = (column, method, reason)
  }
}

extension MaskedColumn: CustomStringConvertible {
  /// `Email: hash by stages[1], classified compliance PII`
  package var description: String {
    let why =
      switch self.reason {
      case .named(let name) where name == self.column: "named"
      case .named(let pattern): "named by '\(pattern)'"
      case .classified(let terms): "classified \(terms.joined(separator: ", "))"
      case .undescribed: "not described by the org, so treated as classified"
      }
    return "\(self.column): \(self.method.rawValue) by stages[\(self.stage)], \(why)"
  }
}
