/// One node of a compiled expression. Its operands come before it, so the last one is the root.
struct Instruction {
  var operation: Operation
  /// The position of the operator or name in the text, in bytes.
  var offset: Int32
  /// Their meaning depends on the operation.
  var a: Int32 = 0
  var b: Int32 = 0
  var c: Int32 = 0
  var d: Int32 = 0
}

enum Operation: UInt8 {
  // a: index of a constant, column or macro variable.
  case constant, column, local
  /// Whether the event has column a.
  case hasColumn
  /// All columns as a map.
  case row
  // a: operand; b: constant with the field's name.
  case select, hasField
  // a: first of the operands' places in the list of operands; b: their count.
  case list, map
  // a, b (, c): operands.
  case and, or, conditional
  case not, negate
  case add, subtract, multiply, divide, modulo
  case equal, notEqual, less, lessOrEqual, greater, greaterOrEqual, `in`, index
  case size, contains, startsWith, endsWith, matches
  // a: operand; b: index of a pattern.
  case matchesPattern
  case typeOf, dynamic
  case toInt, toUint, toDouble, toString, toBytes, toBool, toTimestamp, toDuration
  // a: operand; b: time zone, or -1.
  case fullYear, month, date, dayOfMonth, dayOfWeek, dayOfYear, hours, minutes, seconds
  case milliseconds
  // a: list or map; b: predicate or element; c: index of the macro variable; d, of mapIf: element.
  case all, exists, existsOne, filter, mapEach, mapIf
}

extension Operation {
  /// The operands among a, b, c of operations that depend only on them; nil for all others.
  var operandCount: Int? {
    switch self {
    case .constant, .column, .local, .hasColumn, .row, .list, .map, .all, .exists, .existsOne,
      .filter, .mapEach, .mapIf:
      nil
    case .select, .hasField, .matchesPattern, .not, .negate, .size, .typeOf, .dynamic, .toInt,
      .toUint, .toDouble, .toString, .toBytes, .toBool, .toTimestamp, .toDuration:
      1
    case .and, .or, .add, .subtract, .multiply, .divide, .modulo, .equal, .notEqual, .less,
      .lessOrEqual, .greater, .greaterOrEqual, .in, .index, .contains, .startsWith, .endsWith,
      .matches, .fullYear, .month, .date, .dayOfMonth, .dayOfWeek, .dayOfYear, .hours, .minutes,
      .seconds, .milliseconds:
      2
    case .conditional: 3
    }
  }
}
