internal import Bytes

extension JSONReader {
  /// A share from 0 to 1, as a number or as the text that a variable stands for.
  package func fraction(_ name: String) -> Double? {
    guard let value = self.any(name) else { return nil }
    let expectation = "a number from 0 to 1, such as 0.01"
    let text: String
    switch value.content {
    case .number(let number): text = number
    case .string(let string) where value.isSubstituted: text = string
    default:
      self.expected(name, expectation, found: value)
      return nil
    }
    guard let fraction = Double(text), (0...1).contains(fraction) else {
      self.report(name, "expected \(expectation)")
      return nil
    }
    return fraction
  }

  /// A number of bytes: an integer, or a text of an integer and a unit (`"128MiB"`, `"64kB"`).
  /// Units: B, kB, MB, GB (powers of 1000), KiB, MiB, GiB (powers of 1024).
  package func byteCount(
    _ name: String, in range: ClosedRange<Int> = 0 ... .max, required: Bool = false
  ) -> Int? {
    guard let value = self.any(name, required: required) else { return nil }
    let expectation = "a number of bytes such as \"128MiB\""
    let count: Int?
    switch value.content {
    case .number(let text): count = Int(text)
    case .string(let text): count = Self.byteCount(text)
    default:
      self.expected(name, expectation, found: value)
      return nil
    }
    guard let count else {
      self.report(
        name,
        "expected \(expectation)\(Self.form(value) { Self.meantBytes($0) }); units: B, kB, MB, GB, "
          + "KiB, MiB, GiB")
      return nil
    }
    return self.checked(count, name, in: range) { Self.text(bytes: $0) }
  }

  private func checked<Quantity>(
    _ quantity: Quantity, _ name: String, in range: ClosedRange<Quantity>,
    text: (Quantity) -> String
  ) -> Quantity? {
    if range.contains(quantity) { return quantity }
    let isLow = quantity < range.lowerBound
    self.report(
      name,
      "must be "
        + (isLow ? "at least \(text(range.lowerBound))" : "at most \(text(range.upperBound))"))
    return nil
  }

  /// A length of time: a text of integers with units, `"15s"`, `"500ms"`, `"1h30m"`.
  /// Units: ms, s, m, h, d. A bare number has no unit and is refused, except 0.
  package func duration(
    _ name: String, in range: ClosedRange<Duration> = .zero ... .seconds(366 * 86_400),
    required: Bool = false
  ) -> Duration? {
    guard let value = self.any(name, required: required) else { return nil }
    let expectation = "a duration such as \"15s\", \"500ms\" or \"1h30m\""
    let duration: Duration?
    switch value.content {
    case .string(let text): duration = Self.duration(text)
    case .number("0"): duration = .zero
    case .number:
      self.report(name, "expected \(expectation); a number needs a unit: ms, s, m, h, d")
      return nil
    default:
      self.expected(name, expectation, found: value)
      return nil
    }
    guard let duration else {
      self.report(
        name,
        "expected \(expectation)\(Self.form(value) { Self.meantDuration($0) }); units: ms, s, m, "
          + "h, d")
      return nil
    }
    return self.checked(duration, name, in: range) { Self.text(duration: $0) }
  }

  /// What is wrong with the form of a text, and the right spelling if it is clear what it means.
  private static func form(_ value: JSONValue, meant: (String) -> String?) -> String {
    guard let text = value.string else { return "" }
    let form = text.contains(where: \.isWhitespace) ? ", without spaces" : ""
    guard !value.holdsSubstitution, let right = meant(text) else { return form }
    return "\(form); did you mean \"\(right)\"?"
  }

  /// `128MB` of `128 mb` or `128 megabytes`; nil if it is not clear what is meant.
  private static func meantBytes(_ text: String) -> String? {
    let units = [
      "b": "B", "byte": "B", "k": "kB", "kb": "kB", "kilobyte": "kB", "m": "MB", "mb": "MB",
      "megabyte": "MB", "g": "GB", "gb": "GB", "gigabyte": "GB", "kib": "KiB", "kibibyte": "KiB",
      "mib": "MiB", "mebibyte": "MiB", "gib": "GiB", "gibibyte": "GiB",
    ]
    guard let parts = Self.quantities(text), parts.count == 1, let unit = units[parts[0].unit]
    else { return nil }
    let right = parts[0].number + unit
    return Self.byteCount(right) == nil ? nil : right
  }

  /// `10m` of `10 minutes`, `1h30m` of `1 hour 30 min`; nil if it is not clear what is meant.
  private static func meantDuration(_ text: String) -> String? {
    let units = [
      "ms": "ms", "msec": "ms", "millisecond": "ms", "s": "s", "sec": "s", "second": "s", "m": "m",
      "min": "m", "minute": "m", "h": "h", "hr": "h", "hour": "h", "d": "d", "day": "d",
    ]
    guard let parts = Self.quantities(text) else { return nil }
    var right = ""
    for part in parts {
      guard let unit = units[part.unit] else { return nil }
      right += part.number + unit
    }
    return Self.duration(right) == nil ? nil : right
  }

  /// Numbers and their units, in lower case and the singular; nil for any other text.
  private static func quantities(_ text: String) -> [(number: String, unit: String)]? {
    var rest = text.lowercased().filter { !$0.isWhitespace }[...]
    var parts: [(number: String, unit: String)] = []
    while !rest.isEmpty {
      let number = rest.prefix { $0.isASCII && $0.isNumber }
      rest = rest.dropFirst(number.count)
      let unit = rest.prefix(while: \.isLetter)
      rest = rest.dropFirst(unit.count)
      guard !number.isEmpty, !unit.isEmpty else { return nil }
      let isPlural = unit.count > 2 && unit.hasSuffix("s")
      parts.append((String(number), String(isPlural ? unit.dropLast() : unit)))
    }
    return parts.isEmpty ? nil : parts
  }

  /// Parses `"128MiB"`; nil when it is not a number of bytes or exceeds 63 bits.
  package static func byteCount(_ text: String) -> Int? {
    let digits = text.prefix { $0.isASCII && $0.isNumber }
    guard !digits.isEmpty, let number = Int(digits) else { return nil }
    let factor: Int
    switch text.dropFirst(digits.count) {
    case "", "B": factor = 1
    case "kB": factor = 1000
    case "MB": factor = 1_000_000
    case "GB": factor = 1_000_000_000
    case "KiB": factor = 1 << 10
    case "MiB": factor = 1 << 20
    case "GiB": factor = 1 << 30
    default: return nil
    }
    let (product, overflow) = number.multipliedReportingOverflow(by: factor)
    return overflow ? nil : product
  }

  /// Parses `"1h30m"`, `"500ms"`, `"0"`; larger units first, each once. Nil for anything else.
  package static func duration(_ text: String) -> Duration? {
    if text == "0" { return .zero }
    let units: [(name: String, milliseconds: Int)] = [
      ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1),
    ]
    var rest = text[...]
    var next = 0
    var sum = 0
    guard !rest.isEmpty else { return nil }
    while !rest.isEmpty {
      let digits = rest.prefix { $0.isASCII && $0.isNumber }
      rest = rest.dropFirst(digits.count)
      let letters = rest.prefix { $0.isLetter }
      rest = rest.dropFirst(letters.count)
      guard let number = Int(digits),
        let unit = units.indices.first(where: { $0 >= next && units[$0].name == letters })
      else { return nil }
      let (product, tooLarge) = number.multipliedReportingOverflow(by: units[unit].milliseconds)
      let (total, overflow) = sum.addingReportingOverflow(product)
      if tooLarge || overflow { return nil }
      sum = total
      next = unit + 1
    }
    return .milliseconds(sum)
  }

  package static func text(bytes: Int) -> String {
    let units = [
      ("GiB", 1 << 30), ("GB", 1_000_000_000), ("MiB", 1 << 20), ("MB", 1_000_000),
      ("KiB", 1 << 10),
    ]
    for (name, factor) in units where bytes >= factor && bytes % factor == 0 {
      return "\(bytes / factor)\(name)"
    }
    return "\(bytes) bytes"
  }

  package static func text(duration: Duration) -> String {
    let (seconds, attoseconds) = duration.components
    if attoseconds != 0 { return "\(seconds * 1000 + attoseconds / 1_000_000_000_000_000)ms" }
    for (name, factor) in [("d", 86_400), ("h", 3600), ("m", 60)] as [(String, Int64)]
    where seconds >= factor && seconds % factor == 0 {
      return "\(seconds / factor)\(name)"
    }
    return "\(seconds)s"
  }
}
