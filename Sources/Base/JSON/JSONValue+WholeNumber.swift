extension JSONValue {
  /// The number as an integer, also one with a fraction of zeros or an exponent: `3.0`, `1e18`. Nil for
  /// other fractions and what 64 bits do not hold. Exact: no floating-point number is involved.
  package var wholeNumber: Int64? {
    guard case .number(let text) = self.content else { return nil }
    return Int64(text) ?? Self.wholeNumber(text)
  }

  private static func wholeNumber(_ text: String) -> Int64? {
    let parts = text.split(
      maxSplits: 1, omittingEmptySubsequences: false, whereSeparator: { $0 == "e" || $0 == "E" })
    let mantissa = parts[0].split(
      separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    let fraction = mantissa.count > 1 ? mantissa[1] : ""
    // The text may be long; every step takes time linear in its length.
    var digits = mantissa[0] + fraction
    let isNegative = digits.first == "-"
    if isNegative { digits.removeFirst() }
    digits = digits.drop { $0 == "0" }
    guard !digits.isEmpty else { return 0 }
    guard let exponent = parts.count > 1 ? Int(parts[1]) : 0 else { return nil }
    let significant = digits.count - digits.reversed().prefix { $0 == "0" }.count
    let (shift, overflow) = exponent.subtractingReportingOverflow(fraction.utf8.count)
    // Zeros to append, or to take away.
    let zeros = overflow ? .max : shift
    let (count, isHuge) = digits.count.addingReportingOverflow(zeros)
    guard !isHuge, count >= significant, count <= 19 else { return nil }
    let whole =
      zeros >= 0 ? digits + String(repeating: "0", count: zeros) : digits.prefix(count)
    return Int64((isNegative ? "-" : "") + whole)
  }
}
