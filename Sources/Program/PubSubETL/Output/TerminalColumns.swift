/// How many columns of a terminal a text takes: letters of East Asia and emoji take two each.
enum TerminalColumns {
  static func width(_ text: String) -> Int { text.reduce(0) { $0 + Self.width($1) } }

  /// The beginning of a text, at most this many columns.
  static func prefix(_ text: String, width: Int) -> String {
    var left = width
    return String(
      text.prefix { character in
        left -= Self.width(character)
        return left >= 0
      })
  }

  /// The end of a text, at most this many columns.
  static func suffix(_ text: String, width: Int) -> String {
    String(Self.prefix(String(text.reversed()), width: width).reversed())
  }

  /// Rather too many than too few: a line that wraps cannot be erased.
  private static func width(_ character: Character) -> Int {
    character.unicodeScalars.contains { $0.value >= 0x1100 && !(0x2010...0x2027 ~= $0.value) }
      ? 2 : 1
  }
}
