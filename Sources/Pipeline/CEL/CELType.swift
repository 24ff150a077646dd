/// The static type of a value.
package indirect enum CELType: Hashable, Sendable {
  /// Known at evaluation only.
  case dyn
  case null, bool, int, uint, double, decimal, string, bytes, timestamp, duration, type
  case list(CELType)
  case map(CELType, CELType)
}

extension CELType: CustomStringConvertible {
  package var description: String {
    switch self {
    case .dyn: "dyn"
    case .null: "null"
    case .bool: "bool"
    case .int: "int"
    case .uint: "uint"
    case .double: "double"
    case .decimal: "decimal"
    case .string: "string"
    case .bytes: "bytes"
    case .timestamp: "timestamp"
    case .duration: "duration"
    case .type: "type"
    case .list(let element): "list(\(element))"
    case .map(let key, let value): "map(\(key), \(value))"
    }
  }
}

extension CELType {
  var isNumber: Bool {
    switch self {
    case .int, .uint, .double, .decimal, .dyn: true
    default: false
    }
  }

  /// Whether values of both types can be equal: of one type, both numbers, or one of them null, which
  /// every column can be.
  func isComparable(to other: CELType) -> Bool {
    switch (self, other) {
    case (.dyn, _), (_, .dyn), (.null, _), (_, .null): true
    case (.list(let left), .list(let right)): left.isComparable(to: right)
    case (.map(let leftKey, let left), .map(let rightKey, let right)):
      leftKey.isComparable(to: rightKey) && left.isComparable(to: right)
    default: self == other || (self.isNumber && other.isNumber)
    }
  }

  /// Whether a value of this type can be an operand of type `parameter`.
  func isAccepted(as parameter: CELType) -> Bool {
    switch (self, parameter) {
    case (.dyn, _), (_, .dyn): true
    case (.list(let element), .list(let expected)): element.isAccepted(as: expected)
    case (.map(let key, let value), .map(let expectedKey, let expected)):
      key.isAccepted(as: expectedKey) && value.isAccepted(as: expected)
    default: self == parameter
    }
  }

  /// The type of a value that may be of either; nil when they have nothing in common. Null goes with
  /// every type.
  func joined(with other: CELType) -> CELType? {
    switch (self, other) {
    case _ where self == other: self
    case (.null, let type), (let type, .null): type
    case (.dyn, _), (_, .dyn): .dyn
    case (.list(let left), .list(let right)): .list(left.joined(with: right) ?? .dyn)
    case (.map(let leftKey, let left), .map(let rightKey, let right)):
      .map(leftKey.joined(with: rightKey) ?? .dyn, left.joined(with: right) ?? .dyn)
    default: nil
    }
  }
}
