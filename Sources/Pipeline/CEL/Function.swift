/// Functions and operators with their overloads (CEL language definition, "List of Standard
/// Definitions"). The compiler handles lists, maps and equality, whose types depend on their
/// elements.
struct Function {
  struct Overload {
    var parameters: [CELType]
    var result: CELType
  }

  var operation: Operation
  var overloads: [Overload]

  private init(_ operation: Operation, _ overloads: [([CELType], CELType)]) {
    self.operation = operation
    self.overloads = overloads.map { Overload(parameters: $0.0, result: $0.1) }
  }

  private init(_ operation: Operation, to result: CELType, from types: [CELType]) {
    self.init(operation, types.map { ([$0], result) })
  }

  private init(_ operation: Operation, each types: [CELType]) {
    self.init(operation, types.map { ([$0, $0], $0) })
  }

  private static let anyList = CELType.list(.dyn)
  private static let anyMap = CELType.map(.dyn, .dyn)

  /// Operators by the name that the parser gives them.
  static let operators: [String: Function] = [
    "!_": Self(.not, [([.bool], .bool)]),
    "-_": Self(.negate, [([.int], .int), ([.double], .double)]),
    "+": Self(
      .add,
      [.int, .uint, .double, .string, .bytes, .duration].map { ([$0, $0], $0) } + [
        ([.timestamp, .duration], .timestamp), ([.duration, .timestamp], .timestamp),
        ([anyList, anyList], anyList),
      ]),
    "-": Self(
      .subtract,
      [.int, .uint, .double, .duration].map { ([$0, $0], $0) } + [
        ([.timestamp, .timestamp], .duration), ([.timestamp, .duration], .timestamp),
      ]),
    "*": Self(.multiply, each: [.int, .uint, .double]),
    "/": Self(.divide, each: [.int, .uint, .double]),
    "%": Self(.modulo, each: [.int, .uint]),
    "<": Self.ordering(.less), "<=": Self.ordering(.lessOrEqual),
    ">": Self.ordering(.greater), ">=": Self.ordering(.greaterOrEqual),
    "&&": Self(.and, [([.bool, .bool], .bool)]),
    "||": Self(.or, [([.bool, .bool], .bool)]),
  ]

  private static let numbers: [CELType] = [.int, .uint, .double, .decimal]

  /// Numbers of all types are ordered among each other.
  private static func ordering(_ operation: Operation) -> Function {
    let same: [CELType] = [.bool, .string, .bytes, .timestamp, .duration]
    return Self(
      operation,
      Self.numbers.flatMap { left in Self.numbers.map { ([left, $0], .bool) } }
        + same.map { ([$0, $0], .bool) })
  }

  /// Called as `f(x)`.
  static let global: [String: Function] = [
    "size": Self(.size, to: .int, from: [.string, .bytes, anyList, anyMap]),
    "type": Self(.typeOf, to: .type, from: [.dyn]),
    "dyn": Self(.dynamic, to: .dyn, from: [.dyn]),
    "int": Self(.toInt, to: .int, from: [.int, .uint, .double, .string, .timestamp]),
    "uint": Self(.toUint, to: .uint, from: [.uint, .int, .double, .string]),
    "double": Self(.toDouble, to: .double, from: [.double, .int, .uint, .decimal, .string]),
    "string": Self(
      .toString, to: .string,
      from: [
        .string, .bool, .int, .uint, .double, .decimal, .bytes, .timestamp, .duration,
      ]),
    "bytes": Self(.toBytes, to: .bytes, from: [.bytes, .string]),
    "bool": Self(.toBool, to: .bool, from: [.bool, .string]),
    "timestamp": Self(.toTimestamp, to: .timestamp, from: [.timestamp, .string, .int]),
    "duration": Self(.toDuration, to: .duration, from: [.duration, .string]),
    "matches": Self(.matches, [([.string, .string], .bool)]),
  ]

  /// Called as `x.f()`; the receiver is the first parameter.
  static let member: [String: Function] = [
    "size": Self(.size, to: .int, from: [.string, .bytes, anyList, anyMap]),
    "contains": Self(.contains, [([.string, .string], .bool)]),
    "startsWith": Self(.startsWith, [([.string, .string], .bool)]),
    "endsWith": Self(.endsWith, [([.string, .string], .bool)]),
    "matches": Self(.matches, [([.string, .string], .bool)]),
    "getFullYear": Self.part(.fullYear), "getMonth": Self.part(.month),
    "getDate": Self.part(.date), "getDayOfMonth": Self.part(.dayOfMonth),
    "getDayOfWeek": Self.part(.dayOfWeek), "getDayOfYear": Self.part(.dayOfYear),
    "getHours": Self.part(.hours, ofDuration: true),
    "getMinutes": Self.part(.minutes, ofDuration: true),
    "getSeconds": Self.part(.seconds, ofDuration: true),
    "getMilliseconds": Self.part(.milliseconds, ofDuration: true),
  ]

  private static func part(_ operation: Operation, ofDuration: Bool = false) -> Function {
    Self(
      operation,
      [([.timestamp], .int), ([.timestamp, .string], .int)]
        + (ofDuration ? [([.duration], .int)] : []))
  }

  static let macros = ["all", "exists", "exists_one", "filter", "map"]

  /// Functions and macros of CEL's extension libraries, and of optional values.
  static let unsupported: Set<String> = [
    "charAt", "format", "indexOf", "join", "lastIndexOf", "lowerAscii", "quote", "replace", "split",
    "substring", "trim", "upperAscii", "reverse", "flatten", "slice", "sort", "sortBy", "distinct",
    "first", "last", "existsOne", "transformList", "transformMap", "transformMapEntry", "ip",
    "cidr",
    "isIP", "isCIDR", "optMap", "optFlatMap", "orValue", "hasValue", "getExt", "hasExt", "now",
  ]

  /// The first word of qualified names of the extension libraries and of protobuf packages.
  static let unsupportedNamespaces: Set<String> = [
    "base64", "cel", "google", "ip", "cidr", "lists", "math", "net", "optional", "proto", "proto2",
    "proto3", "regex", "sets", "strings",
  ]
}
