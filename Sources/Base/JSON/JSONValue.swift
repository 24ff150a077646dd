/// A JSON value that knows where it stood in its text (RFC 8259).
///
/// Two values are equal when their contents are: positions do not count, the order of an object's
/// members does.
public struct JSONValue: Sendable {
  public indirect enum Content: Sendable, Equatable {
    case null
    case boolean(Bool)
    /// The number as it was written, for example `1e3`, so that no digit is lost.
    case number(String)
    case string(String)
    case array([JSONValue])
    /// In the order of the text. A parser has refused duplicate names.
    case object([JSONMember])
  }

  /// Where the value begins: line and column from 1, in characters; 0 for a value made in memory.
  public struct Position: Sendable, Hashable {
    public var line: Int
    public var column: Int
    public init(line: Int = 0, column: Int = 0) {
      self.line = line
      self.column = column
    }
  }

  public var content: Content
  public var position: Position
  /// Whether the string replaced exactly one variable. `JSONReader` then also accepts its text as a
  /// number or boolean. Ignored by equality.
  public var isSubstituted = false
  /// A string that holds the text of a variable or file, which may be a secret: messages do not
  /// quote it. Does not count for equality.
  public var holdsSubstitution = false

  public init(_ content: Content, at position: Position = Position()) {
    self.content = content
    self.position = position
  }
}

/// A name and its value in a JSON object.
public struct JSONMember: Sendable, Equatable {
  public var name: String
  public var namePosition: JSONValue.Position
  public var value: JSONValue

  public init(
    _ name: String, _ value: JSONValue, at namePosition: JSONValue.Position = .init()
  ) {
    self.name = name
    self.namePosition = namePosition
    self.value = value
  }

  public static func == (left: Self, right: Self) -> Bool {
    left.name == right.name && left.value == right.value
  }
}

extension JSONValue: Equatable {
  public static func == (left: Self, right: Self) -> Bool { left.content == right.content }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByIntegerLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral,
  ExpressibleByNilLiteral
{
  public init(stringLiteral value: String) { self.init(.string(value)) }
  public init(booleanLiteral value: Bool) { self.init(.boolean(value)) }
  public init(integerLiteral value: Int64) { self.init(.number(String(value))) }
  public init(arrayLiteral elements: JSONValue...) { self.init(.array(elements)) }
  public init(dictionaryLiteral elements: (String, JSONValue)...) {
    self.init(.object(elements.map { JSONMember($0.0, $0.1) }))
  }
  public init(nilLiteral: ()) { self.init(.null) }

  public static func string(_ value: String) -> Self { Self(.string(value)) }
  public static func integer(_ value: some BinaryInteger) -> Self { Self(.number("\(value)")) }
  public static func boolean(_ value: Bool) -> Self { Self(.boolean(value)) }
  public static func array(_ values: [JSONValue]) -> Self { Self(.array(values)) }
}

extension JSONValue {
  /// The member of that name, nil without one, or when the value is not an object.
  public subscript(_ name: String) -> JSONValue? {
    guard case .object(let members) = self.content else { return nil }
    return members.first { $0.name == name }?.value
  }

  public var string: String? {
    if case .string(let text) = self.content { text } else { nil }
  }

  /// The number as an integer; nil for fractions, exponents and what 64 bits do not hold.
  public var integer: Int64? {
    if case .number(let text) = self.content { Int64(text) } else { nil }
  }

  public var boolean: Bool? {
    if case .boolean(let value) = self.content { value } else { nil }
  }

  public var array: [JSONValue]? {
    if case .array(let values) = self.content { values } else { nil }
  }

  public var members: [JSONMember]? {
    if case .object(let members) = self.content { members } else { nil }
  }
}

extension JSONValue {
  /// What messages have instead of a text from outside of the document.
  private static let substitution = "(the value of a variable or file)"

  /// A shorter text is left out only between quotes, because it occurs in words by chance.
  private static let shortestUnquoted = 4

  /// A message without the texts that came from outside of the document. An absolute path that the
  /// document completes, such as `${HOME}/out`, stays.
  func hidden(in message: String) -> String {
    var message = message
    for text in self.substituted.sorted(by: { $0.utf8.count > $1.utf8.count }) {
      message = message.replacing("'\(text)'", with: Self.substitution)
      guard text.utf8.count >= Self.shortestUnquoted else { continue }
      message = message.replacing(text, with: Self.substitution)
      message = Self.hidingQuotedParts(of: text, in: message)
      guard text.contains("/") else { continue }
      // A text that is used as a path may have been normalized.
      for part in text.split(separator: "/") where part.utf8.count >= Self.shortestUnquoted {
        message = message.replacing("/\(part)", with: "/\(Self.substitution)")
      }
    }
    return message
  }

  /// A parser quotes the part of a text that it does not understand.
  private static func hidingQuotedParts(of text: String, in message: String) -> String {
    var pieces = message.split(separator: "'", omittingEmptySubsequences: false).map(String.init)
    for index in pieces.indices.dropFirst().dropLast() {
      let part = pieces[index].hasSuffix("…") ? String(pieces[index].dropLast()) : pieces[index]
      if part.utf8.count >= Self.shortestUnquoted, text.contains(part) { pieces[index] = "…" }
    }
    return pieces.joined(separator: "'")
  }

  private var substituted: [String] {
    switch self.content {
    case .string(let text):
      let isCompletedPath = !self.isSubstituted && text.hasPrefix("/")
      return self.holdsSubstitution && !text.isEmpty && !isCompletedPath ? [text] : []
    case .array(let elements): return elements.flatMap(\.substituted)
    case .object(let members): return members.flatMap { $0.value.substituted }
    case .null, .boolean, .number: return []
    }
  }

  /// How a message names the value: a text in single quotes, unless it came from outside of the
  /// document; anything else by its kind.
  public var quoted: String {
    guard let text = self.string else { return self.kind }
    if self.holdsSubstitution { return Self.substitution }
    let longest = 60
    return text.count > longest ? "'\(text.prefix(longest))…'" : "'\(text)'"
  }
}
