/// Text parameters that stand for many values.
@usableFromInline package enum SQLArray {
  /// The array literal of texts (PostgreSQL manual, 8.15.6).
  ///
  /// Inlinable, because the sink calls it with an ID per record: so it is specialised there.
  @inlinable package static func literal(_ texts: some Sequence<String?>) -> String {
    var literal = "{"
    for text in texts {
      if literal.utf8.count > 1 { literal += "," }
      guard let text else {
        literal += "NULL"
        continue
      }
      literal += "\""
      for scalar in text.unicodeScalars {
        if scalar == "\"" || scalar == "\\" { literal.unicodeScalars.append("\\") }
        literal.unicodeScalars.append(scalar)
      }
      literal += "\""
    }
    return literal + "}"
  }
}
