/// The values of a picklist that an admin has edited.
///
/// Records have numbers of choices, so a value that gets another name has it in all of them.
struct Picklist: Sendable, Equatable {
  struct Choice: Sendable, Equatable {
    var value: String
    var label: String
    var isActive = true

    init(_ value: String) { (self.value, self.label) = (value, value) }
  }

  /// What an admin does to a value.
  enum Change: Sendable, Equatable {
    /// A new value at the end, with its own name as the label.
    case add(String)
    /// Gives a value another API name, which all its records then have.
    case rename(String, to: String)
    case relabel(String, to: String)
    case activate(String)
    /// Records keep the value; no record gets it any more.
    case deactivate(String)
    /// To a place, counted from 1.
    case move(String, to: Int)

    init?(_ action: Substring, _ words: [Substring]) {
      let texts = words.map { String($0) }
      switch (action, words.count) {
      case ("add_value", 1): self = .add(texts[0])
      case ("rename_value", 2): self = .rename(texts[0], to: texts[1])
      case ("relabel_value", 2): self = .relabel(texts[0], to: texts[1])
      case ("activate_value", 1): self = .activate(texts[0])
      case ("deactivate_value", 1): self = .deactivate(texts[0])
      case ("move_value", 2):
        guard let place = Int(texts[1]) else { return nil }
        self = .move(texts[0], to: place)
      default: return nil
      }
      let isText = texts.allSatisfy { text in
        (1...255).contains(text.count) && !text.contains(";")
          && text.unicodeScalars.allSatisfy { $0.value >= 0x20 }
      }
      guard isText else { return nil }
    }
  }

  /// The most choices, since versions have a byte for each.
  private static let limit = 250
  /// A byte of a version without a choice.
  private static let none: UInt32 = 0xff

  let isMultiple: Bool
  /// By number.
  private var choices: [Choice]
  /// Numbers in the order of the org.
  private var order: [Int]

  /// - Parameter kind: of a field with the values that all picklists begin with.
  init?(_ kind: ValueKind) {
    switch kind {
    case .choices(let list): self = list
    case .picklist, .multiPicklist:
      self.choices = SampleText.picklist.map { Choice(String(decoding: $0, as: UTF8.self)) }
      self.order = Array(self.choices.indices)
      self.isMultiple = kind == .multiPicklist
    default: return nil
    }
  }

  var ordered: [Choice] { self.order.map { self.choices[$0] } }

  func value(_ number: Int) -> String { self.choices[number].value }

  func number(of value: String) -> Int? { self.choices.firstIndex { $0.value == value } }

  mutating func apply(_ change: Change) throws {
    switch change {
    case .add(let value):
      try self.checkNew(value)
      self.order.append(self.choices.count)
      self.choices.append(Choice(value))
    case .rename(let value, let name):
      try self.checkNew(name)
      self.choices[try self.known(value)].value = name
    case .relabel(let value, let label): self.choices[try self.known(value)].label = label
    case .activate(let value): self.choices[try self.known(value)].isActive = true
    case .deactivate(let value):
      let number = try self.known(value)
      guard self.active.contains(where: { $0 != number }) else {
        throw SimulatorError(.configuration, "'\(value)' is the last active value")
      }
      self.choices[number].isActive = false
    case .move(let value, let place):
      let number = try self.known(value)
      guard (1...self.order.count).contains(place) else {
        throw SimulatorError(.configuration, "places are 1 to \(self.order.count)")
      }
      self.order.removeAll { $0 == number }
      self.order.insert(number, at: place - 1)
    }
  }

  private func checkNew(_ value: String) throws {
    guard self.number(of: value) == nil, self.choices.count < Self.limit else {
      throw SimulatorError(
        .configuration, "'\(value)' is a value already, or there are \(Self.limit) values")
    }
  }

  private func known(_ value: String) throws -> Int {
    guard let number = self.number(of: value) else {
      throw SimulatorError(.configuration, "'\(value)' is not a value of the picklist")
    }
    return number
  }

  private var active: [Int] { self.choices.indices.filter { self.choices[$0].isActive } }

  // MARK: Versions

  /// The version of a value with one active choice or, if several can be chosen, up to three.
  func newVersion(_ random: inout RandomStream) -> UInt32 {
    var active = self.active
    var version = ValueSource.Version.chosen
    for place in 0..<3 {
      let hasMore = place == 0 || self.isMultiple && !active.isEmpty && random.chance(0.5)
      let number =
        hasMore ? UInt32(active.remove(at: random.below(active.count))) : Self.none
      version |= number << (8 * UInt32(place))
    }
    return version
  }

  /// The numbers of the choices of such a version.
  func numbers(of version: UInt32) -> [Int] {
    (0..<3).map { version >> (8 * UInt32($0)) & Self.none }.filter { $0 != Self.none }
      .map { Int($0) }
  }
}
