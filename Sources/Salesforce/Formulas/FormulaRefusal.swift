/// Why a formula is not translated, in words for people who read the copy.
package struct FormulaRefusal: Error, Sendable, Equatable {
  /// Begins with a lowercase letter or a name, and has no point at its end.
  package var reason: String

  package init(_ reason: String) { self.reason = reason }
}
