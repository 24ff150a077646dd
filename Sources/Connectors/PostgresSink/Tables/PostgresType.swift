internal import Pipeline

/// The types of data columns.
package enum PostgresType: String, Sendable, CaseIterable {
  case boolean
  case smallint
  case integer
  case bigint
  case real
  case doublePrecision = "double precision"
  case numeric
  case text
  case date
  case time = "time without time zone"
  case timestamp = "timestamp without time zone"
  case timestamptz = "timestamp with time zone"
  case interval
  case uuid
  case bytea
  case jsonb
  case textArray = "text[]"

  /// The name as `format_type` writes it.
  package var sqlName: String { self.rawValue }

  /// `pg_type.oid`: fixed for built-in types.
  package var oid: UInt32 {
    switch self {
    case .boolean: 16
    case .bytea: 17
    case .bigint: 20
    case .smallint: 21
    case .integer: 23
    case .text: 25
    case .real: 700
    case .doublePrecision: 701
    case .textArray: 1009
    case .date: 1082
    case .time: 1083
    case .timestamp: 1114
    case .timestamptz: 1184
    case .interval: 1186
    case .numeric: 1700
    case .uuid: 2950
    case .jsonb: 3802
    }
  }

  /// `pg_type.typname`, for names: `amount__float8`.
  package var shortName: String {
    switch self {
    case .boolean: "bool"
    case .smallint: "int2"
    case .integer: "int4"
    case .bigint: "int8"
    case .real: "float4"
    case .doublePrecision: "float8"
    case .time: "time"
    case .timestamp: "timestamp"
    case .timestamptz: "timestamptz"
    case .textArray: "texts"
    default: self.rawValue
    }
  }

  /// Nil for a type that data columns cannot have. `varchar` counts as `text`, because its values
  /// have the same form and the server checks the length.
  package init?(oid: UInt32) {
    switch oid {
    case 1043: self = .text
    case 1015: self = .textArray
    default:
      guard let type = Self.allCases.first(where: { $0.oid == oid }) else { return nil }
      self = type
    }
  }

  /// - Parameter name: `double precision`, and other names that SQL has for it: `float8`.
  package init?(named name: String) {
    let name = name.lowercased()
    if let type = Self(rawValue: name) ?? Self.allCases.first(where: { $0.shortName == name }) {
      self = type
      return
    }
    switch name {
    case "int": self = .integer
    case "time": self = .time
    case "timestamp": self = .timestamp
    case "decimal": self = .numeric
    case "varchar": self = .text
    default: return nil
    }
  }
}
