/// Queries over what can be seen.
extension RecordStore {
  package func query(_ text: String) throws(APIRefusal) -> SOQLQuery {
    let query = try SOQLParser.query(text, in: self)
    try self.checkWidth(query.fields.count)
    return query
  }

  func checkWidth(_ fieldCount: Int) throws(APIRefusal) {
    guard fieldCount > self.maxQueryFields ?? .max else { return }
    throw APIRefusal(
      "QUERY_TOO_COMPLICATED",
      "Query is either selecting too many fields or the filter conditions "
        + "are too complicated.")
  }

  /// The indexes of the records that a query finds now, in its order.
  package func matches(_ query: SOQLQuery, withDeleted: Bool) -> [Int] {
    let object = query.object
    var found: [Int] = []
    for index in self.candidates(query)
    where
      self.isVisible(object, index, withDeleted: withDeleted)
      && query.condition.map({ self.holds($0, object, index) }) ?? true
    {
      found.append(index)
    }
    if let order = query.order {
      // Records are made in the order of their IDs.
      if case .id = order.field.source {
        if order.isDescending { found.reverse() }
      } else {
        let keys = found.map { SortKey(self.value(object, $0, order.field)) }
        let places = found.indices.sorted {
          keys[$0] == keys[$1]
            ? $0 < $1 : order.isDescending ? keys[$1] < keys[$0] : keys[$0] < keys[$1]
        }
        found = places.map { found[$0] }
      }
    }
    found = Array(found.dropFirst(query.offset))
    if let limit = query.limit { found = Array(found.prefix(limit)) }
    return found
  }

  /// Records that may fulfil the condition: those named, or all.
  private func candidates(_ query: SOQLQuery) -> [Int] {
    guard let ids = query.condition.flatMap(Self.namedIDs) else {
      return Array(0..<self.recordCount(query.object))
    }
    return Set(ids.compactMap { self.index(query.object, of: $0) }).sorted()
  }

  private static func namedIDs(_ condition: SOQLQuery.Condition) -> Set<[UInt8]>? {
    switch condition {
    case .isOneOf(let field, let texts): if case .id = field.source { texts } else { nil }
    case .compare(let field, .equal, .text(let text)):
      if case .id = field.source { [text] } else { nil }
    case .and(let left, let right): Self.namedIDs(left) ?? Self.namedIDs(right)
    default: nil
    }
  }

  private func holds(_ condition: SOQLQuery.Condition, _ object: Int, _ index: Int) -> Bool {
    switch condition {
    case .and(let left, let right):
      return self.holds(left, object, index) && self.holds(right, object, index)
    case .or(let left, let right):
      return self.holds(left, object, index) || self.holds(right, object, index)
    case .not(let condition): return !self.holds(condition, object, index)
    case .isOneOf(let field, let texts):
      guard case .text(let text) = self.value(object, index, field) else { return false }
      return texts.contains {
        Self.isSame(field.type == .id && $0.count == 15 ? RecordID.lengthened($0) : $0, text, field)
      }
    case .compare(let field, let comparison, let literal):
      return Self.holds(self.value(object, index, field), comparison, literal, field)
    }
  }

  /// IDs are compared as they are, other texts without case.
  private static func isSame(_ left: [UInt8], _ right: [UInt8], _ field: OrgField) -> Bool {
    if field.type == .id || field.type == .reference { return left == right }
    return String(decoding: left, as: UTF8.self).lowercased()
      == String(decoding: right, as: UTF8.self).lowercased()
  }

  private static func holds(
    _ value: FieldValue, _ comparison: SOQLQuery.Comparison, _ literal: SOQLQuery.Literal,
    _ field: OrgField
  ) -> Bool {
    switch (value, literal) {
    case (.null, .null): return comparison == .equal
    case (_, .null): return comparison == .unequal
    case (.null, _): return comparison == .unequal
    case (.boolean(let left), .boolean(let right)):
      return comparison == .equal ? left == right : comparison == .unequal && left != right
    case (.int(let left), .number(let right)):
      return Self.holds(Double(left), comparison, right)
    case (.double(let left), .number(let right)): return Self.holds(left, comparison, right)
    // Comparisons see whole seconds.
    case (.dateTime(let left), .time(let right)):
      return Self.holds(left - left % 1000, comparison, right)
    case (.date(let left), .time(let right)): return Self.holds(left, comparison, right)
    case (.text(let left), .text(let right)):
      switch comparison {
      case .equal: return Self.isSame(left, right, field)
      case .unequal: return !Self.isSame(left, right, field)
      default:
        return Self.holds(
          String(decoding: left, as: UTF8.self), comparison, String(decoding: right, as: UTF8.self))
      }
    default: return false
    }
  }

  private static func holds<Value: Comparable>(
    _ left: Value, _ comparison: SOQLQuery.Comparison, _ right: Value
  ) -> Bool {
    switch comparison {
    case .equal: left == right
    case .unequal: left != right
    case .less: left < right
    case .lessOrEqual: left <= right
    case .greater: left > right
    case .greaterOrEqual: left >= right
    }
  }

  /// What values are sorted by: nulls first.
  private enum SortKey: Comparable {
    case null
    case number(Double)
    case text(String)

    init(_ value: FieldValue) {
      switch value {
      case .null, .parts: self = .null
      case .boolean(let value): self = .number(value ? 1 : 0)
      case .int(let value), .date(let value), .dateTime(let value), .time(let value):
        self = .number(Double(value))
      case .double(let value): self = .number(value)
      case .text(let text): self = .text(String(decoding: text, as: UTF8.self))
      }
    }
  }

  // MARK: Answers

  /// A record as JSON, with `attributes`.
  package func appendJSON(
    _ object: Int, _ index: Int, fields: [OrgField], version: String, to bytes: inout [UInt8]
  ) {
    let name = self.objects[object].name
    let id = String(decoding: self.record(object, index).id, as: UTF8.self)
    bytes += "{\"attributes\":{\"type\":\"\(name)\",\"url\":".utf8
    bytes += "\"/services/data/v\(version)/sobjects/\(name)/\(id)\"}".utf8
    for field in fields {
      bytes += ",\"\(field.name)\":".utf8
      self.value(object, index, field).appendJSON(to: &bytes)
    }
    bytes.append(UInt8(ascii: "}"))
  }

  /// The one row of `SELECT COUNT(Id) c, MAX(SystemModstamp) m FROM …`.
  package func aggregateJSON(_ query: SOQLQuery, _ matches: [Int]) -> String {
    var bytes = Array("{\"attributes\":{\"type\":\"AggregateResult\"}".utf8)
    for case .aggregate(let aggregate, let field, let alias) in query.columns {
      bytes += ",\(JSONText.string(alias)):".utf8
      var values = matches.map { self.value(query.object, $0, field) }
      values.removeAll { if case .null = $0 { true } else { false } }
      switch aggregate {
      case .count: bytes += "\(values.count)".utf8
      case .min, .max:
        let sorted = values.map { (SortKey($0), $0) }.sorted { $0.0 < $1.0 }
        let value = aggregate == .min ? sorted.first?.1 : sorted.last?.1
        (value ?? .null).appendJSON(to: &bytes)
      }
    }
    bytes.append(UInt8(ascii: "}"))
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The header line of a Bulk result.
  package static func csvHeader(
    _ fields: [OrgField], delimiter: UInt8, lineEnd: [UInt8]
  )
    -> [UInt8]
  {
    var line: [UInt8] = []
    for (index, field) in fields.enumerated() {
      if index > 0 { line.append(delimiter) }
      line += "\"\(field.name)\"".utf8
    }
    return line + lineEnd
  }

  package func appendCSV(
    _ object: Int, _ index: Int, fields: [OrgField], delimiter: UInt8, lineEnd: [UInt8],
    to bytes: inout [UInt8]
  ) {
    for (place, field) in fields.enumerated() {
      if place > 0 { bytes.append(delimiter) }
      self.value(object, index, field).appendCSV(to: &bytes)
    }
    bytes += lineEnd
  }
}
