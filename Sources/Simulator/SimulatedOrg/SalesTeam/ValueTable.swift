/// The values of a sales team's records: a `RecordTable` keeps their numbers here, so that a record's
/// state is a number per slot as it is with random values.
///
/// Confined to one thread at a time by its owner.
final class ValueTable {
  enum Value: Hashable {
    /// A compound field that is not null.
    case present
    case boolean(Bool)
    case int(Int32)
    case number(Double)
    /// A date or a time, in epoch milliseconds.
    case time(Int64)
    case text(String)

    /// Whether a field of this kind can have the value.
    func fits(_ kind: ValueKind?) -> Bool {
      switch (self, kind) {
      case (.present, nil), (.boolean, .boolean), (.int, .integer), (.time, .dateOnly),
        (.time, .dateTime), (.number, .number), (.number, .currency), (.number, .percent),
        (.number, .latitude), (.number, .longitude), (.number, .textOf):
        true
      case (.text, .boolean), (.text, .integer), (.text, .number), (.text, .currency),
        (.text, .percent), (.text, .dateTime), (.text, .dateOnly), (.text, .timeOnly),
        (.text, .latitude), (.text, .longitude), (.text, .formula):
        false
      case (.text, _): true
      default: false
      }
    }
  }

  /// The first three are null, `present`, and the default of a checkbox, which an admin's new field
  /// gives to all records (`ValueSource.Version.unchecked`).
  private var values: [Value?] = [nil, .present, .boolean(false)]
  private var numbers: [Value: UInt32] = [.present: 1, .boolean(false): 2]

  subscript(number: UInt32) -> Value? { self.values[Int(number)] }

  /// The number of a value, which gets one when it is seen first.
  func number(of value: Value?) -> UInt32 {
    guard let value else { return 0 }
    if let number = self.numbers[value] { return number }
    let number = UInt32(self.values.count)
    self.values.append(value)
    self.numbers[value] = number
    return number
  }

  /// The value of a slot as events and answers have it.
  func cell(_ number: UInt32, _ kind: ValueKind?, into image: inout EventImage) -> Cell {
    switch self[number] {
    case nil: .null
    case .present: .record
    case .boolean(let value): .boolean(value)
    case .int(let value): .int(value)
    case .time(let value): .long(value)
    case .text(let value): image.text(value.utf8)
    case .number(let value):
      if case .textOf = kind { image.text(value.description.utf8) } else { .double(value) }
    }
  }
}
