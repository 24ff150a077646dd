internal import JSON

/// A type as the stage `cast` names it: `"bigint"`, or
/// `{"to": "timestamp", "format": "%d.%m.%Y", "time_zone": "+01:00"}`.
struct CastTarget: KeyedObject, Sendable {
  enum Kind: Sendable {
    case text, boolean, integer, bigint, double, date, timestamp
    case decimal(precision: Int, scale: Int)
  }

  fileprivate static let words = [
    "text", "boolean", "integer", "bigint", "double", "decimal(p,s)", "date", "timestamp",
  ]
  static let maxPrecision = 38

  /// The type as written in the pipeline file.
  var name: String { self.type.name }
  var kind: Kind { self.type.kind }
  fileprivate var type = TypeName(name: "text", kind: .text)
  private(set) var format: TimeFormat?
  /// Seconds east of UTC for times without a zone.
  private(set) var offset: Int64 = 0
  private(set) var trueTexts: [String] = ["true", "1"]
  private(set) var falseTexts: [String] = ["false", "0"]
  /// The rounding mode. Nil rounds floating-point numbers to the nearest value and does not round
  /// exact numbers.
  private(set) var rounding: DecimalNumber.Rounding?

  fileprivate struct TypeName: Sendable {
    var name: String
    var kind: Kind
  }

  static var keys: [Key<Self>] {
    [
      .required("to", \.type, .castType, "Type of the column.", example: "timestamp"),
      .key(
        "format", \.format,
        .text(orElse: "expected a text with \(TimeFormat.directives)") { TimeFormat($0) },
        "How a text has, or gets, a date or time: \(TimeFormat.directives). Without it ISO 8601.",
        example: "%d.%m.%Y"),
      .key(
        "time_zone", \.offset,
        .text(orElse: "expected UTC or an offset such as +01:00") { TimeFormat.offset($0) },
        "UTC, or an offset such as +01:00: zone of texts without one.", default: "UTC",
        example: "+01:00"),
      .key(
        "true", \.trueTexts, .strings(.list(of: .text())), "Texts that mean true.",
        default: ["true", "1"], example: ["yes"]),
      .key(
        "false", \.falseTexts, .strings(.list(of: .text())), "Texts that mean false.",
        default: ["false", "0"], example: ["no"]),
      .key(
        "rounding", \.rounding, .choice(called: "rounding"),
        "Digits that do not fit: half_even, half_up, or none (such values are refused). Default: "
          + "half_even for floating-point numbers, none for texts and decimals."),
    ]
  }

  func check(_ reader: JSONReader) {
    // What a type that is not known permits is not known either.
    guard reader.has("to") else { return }
    if self.format?.isWhole == false, self.isTime { reader.report("format", "needs %Y, %m and %d") }
    self.reportUseless(reader)
    if let both = self.trueTexts.first(where: self.falseTexts.contains) {
      reader.report("false", "'\(both)' is also listed as true")
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

  fileprivate static func kind(_ text: String) -> Kind? {
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
  fileprivate static var typeSchema: JSONSchema {
    .text(
      pattern: #"^(text|boolean|integer|bigint|double|date|timestamp|decimal\([0-9 ,]+\))$"#)
  }

  static var schemaDefinitions: [(name: String, schema: JSONSchema)] {
    let forms = [Self.typeSchema.described("Type of the column."), .object(Self.declarations)]
    return [("castColumn", .oneOf(forms))]
  }
}

extension Kind<CastTarget.TypeName> {
  fileprivate static var castType: Self {
    Kind<String>.string(CastTarget.typeSchema).map { reader, name, text in
      let kind = CastTarget.kind(text)
      if kind == nil {
        let known = CastTarget.words.joined(separator: ", ")
        reader.report(name, "unknown type '\(text)'; known: \(known)")
      }
      return kind.map { CastTarget.TypeName(name: text, kind: $0) }
    }
  }
}

extension Kind<[String: CastTarget]> {
  static var targets: Self {
    Self(
      .map(of: .reference("castColumn"), minCount: 1), objects: [CastTarget.declarations]
    ) { reader, name, _ in
      guard let (columns, members) = reader.columns(name) else { return nil }
      var targets: [String: CastTarget] = [:]
      for member in members {
        guard member.value.members == nil else {
          targets[member.name] = columns.object(member.name)?.read()
          continue
        }
        guard let type = Kind<CastTarget.TypeName>.castType.read(columns, member.name, true) else {
          continue
        }
        var target = CastTarget()
        target.type = type
        targets[member.name] = target
      }
      return targets
    }
  }
}
