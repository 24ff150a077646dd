internal import JSON

/// A type as the stage `cast` names it: `"bigint"`, or
/// `{"to": "timestamp", "format": "%d.%m.%Y", "time_zone": "+01:00"}`.
struct CastTarget {
  enum Kind {
    case text, boolean, integer, bigint, double, date, timestamp
    case decimal(precision: Int, scale: Int)
  }

  private static let words = [
    "text", "boolean", "integer", "bigint", "double", "decimal(p,s)", "date", "timestamp",
  ]
  static let maxPrecision = 38

  /// The type as written in the pipeline file.
  let name: String
  let kind: Kind
  private(set) var format: TimeFormat?
  /// Seconds east of UTC for times without a zone.
  private(set) var offset: Int64 = 0
  private(set) var trueTexts: [String] = ["true", "1"]
  private(set) var falseTexts: [String] = ["false", "0"]
  /// The rounding mode. Nil rounds floating-point numbers to the nearest value and does not round
  /// exact numbers.
  private(set) var rounding: DecimalNumber.Rounding?

  /// Reports mistakes in the member.
  init?(reading reader: JSONReader, _ member: JSONMember) {
    if member.value.members == nil {
      guard let text = reader.string(member.name) else { return nil }
      guard let kind = Self.kind(text) else {
        reader.report(member.name, Self.unknown(text))
        return nil
      }
      (self.name, self.kind) = (text, kind)
      return
    }
    guard let object = reader.object(member.name) else { return nil }
    defer { object.finish() }
    let text = object.string("to", required: true)
    let format = object.string("format")
    let zone = object.string("time_zone")
    let texts = (object.strings("true"), object.strings("false"))
    self.rounding = object.choice("rounding", called: "rounding")
    guard let text else { return nil }
    guard let kind = Self.kind(text) else {
      object.report("to", Self.unknown(text))
      return nil
    }
    (self.name, self.kind) = (text, kind)
    if let format {
      self.format = TimeFormat(format)
      if self.format == nil {
        object.report("format", "expected a text with \(TimeFormat.directives)")
      } else if self.format?.isWhole == false, self.isTime {
        object.report("format", "needs %Y, %m and %d")
      }
    }
    if let zone {
      if let offset = TimeFormat.offset(zone) {
        self.offset = offset
      } else {
        object.report("time_zone", "expected UTC or an offset such as +01:00")
      }
    }
    self.trueTexts = texts.0 ?? self.trueTexts
    self.falseTexts = texts.1 ?? self.falseTexts
    self.reportUseless(object)
    if let both = self.trueTexts.first(where: self.falseTexts.contains) {
      object.report("false", "'\(both)' is also listed as true")
    }
  }

  private var isTime: Bool {
    switch self.kind {
    case .date, .timestamp: true
    default: false
    }
  }

  private func reportUseless(_ object: JSONReader) {
    let allowed: Set<String> =
      switch self.kind {
      case .text, .date, .timestamp: ["format", "time_zone"]
      case .boolean: ["true", "false"]
      case .integer, .bigint, .decimal: ["rounding"]
      case .double: []
      }
    for member in ["format", "time_zone", "true", "false", "rounding"]
    where object.has(member) && !allowed.contains(member) {
      object.report(member, "does not apply to \(self.name)")
    }
  }

  private static func unknown(_ text: String) -> String {
    "unknown type '\(text)'; known: \(Self.words.joined(separator: ", "))"
  }

  private static func kind(_ text: String) -> Kind? {
    switch text {
    case "text": return .text
    case "boolean": return .boolean
    case "integer": return .integer
    case "bigint": return .bigint
    case "double", "double precision": return .double
    case "date": return .date
    case "timestamp": return .timestamp
    default:
      guard let open = text.firstIndex(of: "("), text.hasSuffix(")"),
        ["decimal", "numeric"].contains(text[..<open])
      else { return nil }
      let parts = text[text.index(after: open)...].dropLast()
        .split(separator: ",", omittingEmptySubsequences: false)
        .map { Int($0.filter { $0 != " " }) }
      guard let precision = parts.first ?? nil, parts.count <= 2,
        let scale = parts.count == 2 ? parts[1] : 0,
        (1...Self.maxPrecision).contains(precision), (0...precision).contains(scale)
      else { return nil }
      return .decimal(precision: precision, scale: scale)
    }
  }
}

extension CastTarget {
  static var schemaDefinitions: [(name: String, schema: JSONSchema)] {
    let type = JSONSchema.text(
      pattern: #"^(text|boolean|integer|bigint|double|date|timestamp|decimal\([0-9 ,]+\))$"#)
    let forms: [JSONSchema] = [
      type.described("Type of the column."),
      .object([
        .required("to", type, "Type of the column."),
        .optional(
          "format", .text(minLength: 1),
          "How a text has, or gets, a date or time: \(TimeFormat.directives). Without it ISO 8601."),
        .optional(
          "time_zone", .text(minLength: 1),
          "UTC, or an offset such as +01:00: zone of texts without one.", default: "UTC"),
        .optional("true", .list(of: .text()), "Texts that mean true; default: true, 1."),
        .optional("false", .list(of: .text()), "Texts that mean false; default: false, 0."),
        .optional(
          "rounding", .choice(of: DecimalNumber.Rounding.self),
          "Digits that do not fit: half_even, half_up, or none (such values are refused). Default: "
            + "half_even for floating-point numbers, none for texts and decimals."),
      ]),
    ]
    return [("castColumn", .oneOf(forms))]
  }
}
