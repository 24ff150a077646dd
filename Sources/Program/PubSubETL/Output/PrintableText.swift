import JSON

/// Text as it may reach a terminal, a log or a mail: without secrets, without anything that a terminal
/// would obey or hide.
///
/// The only thing `StandardStream` and `ErrorConsole` take, so that no text of a service, a database
/// or a file gets there another way.
struct PrintableText: Sendable, Equatable {
  let text: String

  private init(unchecked text: String) { self.text = text }

  /// One line, its end included. Line ends inside it are shown as `\n`, so that a peer's text cannot
  /// pass for a line of ours; what is very long is cut.
  init(line: String, hiding secrets: SecretMask) {
    let (text, missing) = Self.beginning(of: line, hiding: secrets)
    self.init(unchecked: Self.line(text, missing: missing) + "\n")
  }

  /// Lines of ours, each ended; longer ones are cut.
  init(lines: String, hiding secrets: SecretMask) {
    let lines = secrets.message(lines).split(separator: "\n", omittingEmptySubsequences: false)
    self.init(unchecked: lines.map { Self.line(String($0)) }.joined(separator: "\n"))
  }

  /// JSON and a line end, of any length. Terminal control characters are escaped, which does not
  /// change the values.
  init(json: JSONValue, _ format: JSONValue.Format = .pretty, hiding secrets: SecretMask) {
    let text = secrets.redacted(json).text(format)
    self.init(unchecked: Self.replacingUnsafe(in: text, keeping: "\n") { Self.escape($0) } + "\n")
  }

  /// Statements of any length. Names in them come from schemas and the pipeline file.
  init(sql: String, hiding secrets: SecretMask) {
    self.init(
      unchecked: Self.replacingUnsafe(in: secrets.redacted(sql), keeping: "\n\t") { _ in "\u{FFFD}"
      }
    )
  }

  /// A page, whose texts have lost secrets and control characters on their way into it.
  init(page: HTMLPage) { self.init(unchecked: page.source) }

  static let empty = PrintableText(unchecked: "")

  /// The number of lines, one without an end included.
  var lineCount: Int { self.text.utf8.count { $0 == UInt8(ascii: "\n") } + 1 }

  /// To the first line and erase the screen below (ECMA-48 CUP, ED).
  static let screenEraser = PrintableText(unchecked: "\u{1B}[H\u{1B}[J")

  /// Erases lines that were written without the end of the last one, and leaves the cursor at the
  /// beginning of the first (ECMA-48 EL, CUU).
  ///
  /// - Parameter lineCount: none are erased as one is, which may have other text in it.
  static func eraser(lineCount: Int) -> PrintableText {
    PrintableText(
      unchecked: "\r\u{1B}[K" + String(repeating: "\u{1B}[A\u{1B}[K", count: max(0, lineCount - 1)))
  }

  /// A line without its end, for a place that is written again or an answer.
  static func unended(_ line: String, hiding secrets: SecretMask) -> PrintableText {
    Self.unended([line], hiding: secrets)
  }

  /// Lines, the last one without its end, for a place that is written again.
  static func unended(_ lines: [String], hiding secrets: SecretMask) -> PrintableText {
    PrintableText(
      unchecked: lines.map { Self.line(secrets.redacted($0)) }.joined(separator: "\n"))
  }

  enum Color: String {
    case red = "31"
    case green = "32"
    case yellow = "33"
  }

  /// The text in a color of the terminal (ECMA-48 SGR), up to its line end.
  func colored(_ color: Color) -> PrintableText {
    let line = self.text.hasSuffix("\n") ? self.text.dropLast() : self.text[...]
    return PrintableText(
      unchecked: "\u{1B}[\(color.rawValue)m\(line)\u{1B}[0m" + self.text.dropFirst(line.count))
  }

  static func + (left: PrintableText, right: PrintableText) -> PrintableText {
    PrintableText(unchecked: left.text + right.text)
  }

  /// A value for a log: without secrets, and as much of it as a line shows.
  static func logged(_ value: String, hiding secrets: SecretMask) -> String {
    let (text, missing) = Self.beginning(of: value, hiding: secrets)
    return Self.cut(text, missing: missing)
  }

  // MARK: Cleaning

  /// Scalars of a text that are looked at, far more than a line shows.
  private static let longestBeginning = 16 * longestLine

  /// The beginning of a text that may be megabytes, without secrets, and how much is left out.
  static func beginning(
    of text: String, hiding secrets: SecretMask
  ) -> (text: String, missing: Int) {
    guard text.utf8.count > Self.longestBeginning else { return (secrets.message(text), 0) }
    let scalars = text.unicodeScalars
    let head = String(String.UnicodeScalarView(scalars.prefix(Self.longestBeginning)))
    // The cut may have divided a secret, whose beginning would not be recognized.
    let redacted = secrets.redacted(head).unicodeScalars.dropLast(secrets.longestCount)
    let missing = max(0, scalars.count - Self.longestBeginning) + secrets.longestCount
    return (String(String.UnicodeScalarView(redacted)), missing)
  }

  /// For a value of another's in a text of several lines, which it may not extend.
  static func withoutLineEnds(_ text: String) -> String {
    text.unicodeScalars.contains("\n")
      ? text.split(separator: "\n", omittingEmptySubsequences: false).joined(separator: "\\n")
      : text
  }

  /// Far beyond any message of ours; service texts go up to megabytes.
  private static let longestLine = 4000

  /// The text as one line without terminal control characters.
  static func line(_ text: String, missing: Int = 0) -> String {
    let clean = Self.replacingUnsafe(in: text, keeping: "") { scalar in
      switch scalar {
      case "\n": "\\n"
      case "\t": " "
      default: "\u{FFFD}"
      }
    }
    return Self.cut(clean, missing: missing)
  }

  /// - Parameter missing: characters that were left out already.
  private static func cut(_ text: String, missing: Int) -> String {
    let scalars = text.unicodeScalars
    let rest = missing + max(0, scalars.count - Self.longestLine)
    guard rest > 0 else { return text }
    return String(scalars.prefix(Self.longestLine))
      + "… (\(ProgressLine.grouped(Int64(rest))) more characters)"
  }

  private static func replacingUnsafe(
    in text: String, keeping kept: String, _ replacement: (Unicode.Scalar) -> String
  ) -> String {
    func isUnsafe(_ scalar: Unicode.Scalar) -> Bool {
      Self.isUnsafe(scalar) && !kept.unicodeScalars.contains(scalar)
    }
    guard text.unicodeScalars.contains(where: isUnsafe) else { return text }
    var result = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
      if isUnsafe(scalar) {
        // One by one: appending a sequence makes room for it alone, each time.
        for scalar in replacement(scalar).unicodeScalars { result.append(scalar) }
      } else {
        result.append(scalar)
      }
    }
    return String(result)
  }

  /// Control characters (C0, DEL, C1), which terminals obey; line separators; format characters,
  /// which are not seen and turn the direction of what is. Two of those join letters and emoji.
  private static func isUnsafe(_ scalar: Unicode.Scalar) -> Bool {
    guard scalar.value >= 0x20, scalar.value != 0x7F else { return true }
    guard scalar.value >= 0x80 else { return false }
    return switch scalar.properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator: true
    case .format: scalar.value != 0x200C && scalar.value != 0x200D
    default: false
    }
  }

  private static func escape(_ scalar: Unicode.Scalar) -> String {
    UTF16.encode(scalar)?.map { unit in
      let digits = String(unit, radix: 16)
      return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
    }.joined() ?? "\u{FFFD}"
  }
}
