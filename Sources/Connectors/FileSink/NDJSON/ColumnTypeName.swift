package import Pipeline

extension Column.Content {
  /// The name of the type, as `_columns.json` has it. Type names follow Avro; `record`, `union` and
  /// `json` are JSON of any form.
  package var typeName: String {
    switch self {
    case .constant: "string"
    case .record(_, .none, _): "record"
    case .record: "union"
    case .slot(_, let type): type.name
    }
  }
}

extension ColumnType {
  fileprivate var name: String {
    switch self {
    case .boolean: "boolean"
    case .int32: "int"
    case .int64: "long"
    case .float: "float"
    case .double: "double"
    case .string: "string"
    case .enumeration: "enum"
    case .bytes: "bytes"
    case .decimal(let precision, let scale): "decimal(\(precision),\(scale))"
    case .uuid: "uuid"
    case .date: "date"
    case .time(let unit): "time-\(unit.suffix)"
    case .timestamp(let unit, let isLocal): "\(isLocal ? "local-" : "")timestamp-\(unit.suffix)"
    case .duration: "duration"
    case .stringList, .fieldSet: "array<string>"
    case .json: "json"
    }
  }
}

extension ColumnType.TimeUnit {
  fileprivate var suffix: String {
    switch self {
    case .milliseconds: "millis"
    case .microseconds: "micros"
    case .nanoseconds: "nanos"
    }
  }
}
