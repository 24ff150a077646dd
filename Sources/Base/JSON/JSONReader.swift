/// Reads one JSON object into typed values and collects every mistake instead of stopping at one.
///
/// Ask for each member by name, then call `finish`, which reports the names nobody asked for:
///
/// ```swift
/// let mistakes = JSONMistakes()
/// let reader = JSONReader(document, mistakes: mistakes)
/// let name = reader.string("name", required: true)
/// let level = reader.integer("level", in: 1...22) ?? 1
/// reader.finish()
/// guard let name, mistakes.isEmpty else { … }
/// ```
///
/// A getter returns nil if the member is missing or has another type. Another type is a mistake,
/// and so is a missing member that is required. `null` is never accepted. Where a number or boolean
/// is expected, the text of a substituted string (`JSONValue.isSubstituted`) is too. Members named
/// `//` are comments.
package final class JSONReader {
  /// JSON pointer of the object.
  package let path: String
  package let value: JSONValue
  package let mistakes: JSONMistakes
  /// What readers of members need beyond the document, such as the place of its file.
  package let context: AnyObject?
  private let members: [JSONMember]
  /// False when the value is not an object: one mistake is enough.
  private let isObject: Bool
  private var known: [String] = []

  /// - Parameter path: JSON pointer of `value` in its document.
  package init(
    _ value: JSONValue, path: String = "", mistakes: JSONMistakes, context: AnyObject? = nil
  ) {
    self.value = value
    self.path = path
    self.mistakes = mistakes
    self.context = context
    self.members = value.members ?? []
    self.isObject = value.members != nil
    if !self.isObject {
      mistakes.append(
        JSONMistake(
          path: path, position: value.position,
          message: "expected an object, found \(value.kind)"))
    }
  }

  /// Reports every member that was not read, with the known names.
  package func finish() {
    for member in self.members where member.name != "//" && !self.known.contains(member.name) {
      var message = "unknown key"
      let nearest = nearest(to: member.name, among: self.known)
      if let nearest { message += "; did you mean '\(nearest)'?" }
      message += self.known.isEmpty ? "" : "; known: \(listing(self.known))"
      var mistake = JSONMistake(
        path: self.path(of: member.name), position: member.namePosition, message: message)
      mistake.isMisspelledKey = nearest != nil
      self.mistakes.append(mistake)
    }
  }

  /// Reports a mistake at a member, or at the object itself if the member is missing.
  package func report(_ name: String, _ message: String) {
    let value = self.members.first { $0.name == name }?.value ?? self.value
    self.report((self.path(of: name), value), message)
  }

  /// Reports a mistake in an element of a list. Texts that came from outside of the document are
  /// left out of the message, because they may be secrets.
  package func report(_ element: (path: String, value: JSONValue), _ message: String) {
    self.mistakes.append(
      JSONMistake(
        path: element.path, position: element.value.position,
        message: element.value.hidden(in: message)))
  }

  /// JSON pointer of a member.
  package func path(of name: String) -> String { Self.path(self.path, name) }

  /// JSON pointer of a member of the object at `parent`.
  package static func path(_ parent: String, _ name: String) -> String {
    guard name.utf8.contains(where: { $0 == UInt8(ascii: "~") || $0 == UInt8(ascii: "/") }) else {
      return "\(parent)/\(name)"
    }
    var escaped = ""
    for character in name.unicodeScalars {
      switch character {
      case "~": escaped += "~0"
      case "/": escaped += "~1"
      default: escaped.unicodeScalars.append(character)
      }
    }
    return "\(parent)/\(escaped)"
  }

  /// The member as it stands, of whatever kind.
  package func any(_ name: String, required: Bool = false) -> JSONValue? {
    if !self.known.contains(name) { self.known.append(name) }
    if let member = self.members.first(where: { $0.name == name }) { return member.value }
    if required, self.isObject { self.report(name, "is required") }
    return nil
  }

  /// True when the object has the member. Does not count as asking for it.
  package func has(_ name: String) -> Bool { self.members.contains { $0.name == name } }

  func expected(_ name: String, _ what: String, found value: JSONValue) {
    self.report(name, "expected \(what), found \(value.kind)")
  }
}

extension JSONReader {
  package func string(_ name: String, required: Bool = false) -> String? {
    guard let value = self.any(name, required: required) else { return nil }
    if let text = value.string { return text }
    self.expected(name, "a string", found: value)
    return nil
  }

  package func bool(_ name: String, required: Bool = false) -> Bool? {
    guard let value = self.any(name, required: required) else { return nil }
    switch value.scalar.content {
    case .boolean(let flag): return flag
    case .string where value.isSubstituted:
      self.report(name, "the variable's value is neither true nor false")
    default: self.expected(name, "true or false", found: value)
    }
    return nil
  }

  /// An integer without fraction or exponent.
  package func integer(
    _ name: String, in range: ClosedRange<Int> = .min ... .max, required: Bool = false
  ) -> Int? {
    guard let value = self.any(name, required: required) else { return nil }
    let expectation = "an integer\(Self.bounds(range))"
    switch value.scalar.content {
    case .number(let text):
      if let number = Int(text), range.contains(number) { return number }
      self.report(
        name,
        "expected \(expectation), "
          + (value.holdsSubstitution ? "the variable has another value" : "found \(text)"))
    case .string where value.isSubstituted:
      self.report(name, "expected \(expectation), the variable has another value")
    default: self.expected(name, expectation, found: value)
    }
    return nil
  }

  private static func bounds(_ range: ClosedRange<Int>) -> String {
    switch (range.lowerBound, range.upperBound) {
    case (.min, .max): ""
    case (let low, .max): " of at least \(low)"
    case (.min, let high): " of at most \(high)"
    case (let low, let high): " from \(low) to \(high)"
    }
  }

  /// One of a closed set of words.
  ///
  /// - Parameter others: what else is accepted there, for the message: `{"events": N}`.
  package func choice<Choice: RawRepresentable<String> & CaseIterable>(
    _ name: String, of type: Choice.Type = Choice.self, called noun: String = "value",
    others: [String] = [], required: Bool = false
  ) -> Choice? {
    guard let text = self.string(name, required: required) else { return nil }
    if let choice = Choice(rawValue: text) { return choice }
    self.reportUnknown(name, text, called: noun, known: Choice.allCases.map(\.rawValue) + others)
    return nil
  }

  /// Reports that a word is none of the known: `unknown sink 'kafka'; known: files`.
  ///
  /// - Parameter page: the page that explains the known words.
  package func reportUnknown(
    _ name: String, _ text: String, called noun: String = "value", known: [String],
    page: String? = nil
  ) {
    // The name itself can be what is unknown.
    let value = name == text ? nil : self.members.first { $0.name == name }?.value
    let quoted = value?.quoted ?? "'\(text)'"
    var message = "unknown \(noun) \(quoted)"
    if let nearest = nearest(to: text, among: known) { message += "; did you mean '\(nearest)'?" }
    message += "; known: \(listing(known))"
    if let page { message += "; the page \(page) explains them" }
    self.report(name, message)
  }

  /// A nested object; its own reader reports into the same mistakes.
  package func object(_ name: String, required: Bool = false) -> JSONReader? {
    guard let value = self.any(name, required: required) else { return nil }
    let reader = self.reader(of: value, at: self.path(of: name))
    return reader.isObject ? reader : nil
  }

  /// The elements of an array with their paths.
  package func elements(
    _ name: String, required: Bool = false
  ) -> [(path: String, value: JSONValue)]? {
    guard let value = self.any(name, required: required) else { return nil }
    guard let elements = value.array else {
      self.expected(name, "an array", found: value)
      return nil
    }
    let path = self.path(of: name)
    return elements.enumerated().map { ("\(path)/\($0.offset)", $0.element) }
  }

  /// An array of objects: a reader for each; any other element is a mistake.
  package func objects(_ name: String, required: Bool = false) -> [JSONReader]? {
    self.elements(name, required: required)?.map { self.reader(of: $0.value, at: $0.path) }
  }

  /// A reader for an object inside this one.
  package func reader(of value: JSONValue, at path: String) -> JSONReader {
    JSONReader(value, path: path, mistakes: self.mistakes, context: self.context)
  }

  /// An array of strings.
  package func strings(_ name: String, required: Bool = false) -> [String]? {
    self.elements(name, required: required)?.compactMap { element in
      if let text = element.value.string { return text }
      self.report(element, "expected a string, found \(element.value.kind)")
      return nil
    }
  }
}

extension JSONValue {
  /// Word for messages.
  package var kind: String {
    switch self.content {
    case .null: "null"
    case .boolean: "a boolean"
    case .number: "a number"
    case .string: "a string"
    case .array: "an array"
    case .object: "an object"
    }
  }

  /// The number or boolean in a substituted string; the string itself if it contains neither.
  var scalar: JSONValue {
    guard self.isSubstituted, let text = self.string, let value = try? JSONValue(parsing: text)
    else { return self }
    switch value.content {
    case .number, .boolean: return value
    default: return self
    }
  }
}

/// The known word a typing mistake most likely meant: at most a third of its letters away, at
/// least one; nil when none is near.
package func nearest(to word: String, among known: [String]) -> String? {
  let count = word.unicodeScalars.count
  let scored = known.lazy.filter {
    // Each letter that only one of them has is a step.
    let other = $0.unicodeScalars.count
    return abs(other - count) <= max(1, other / 3)
  }.map { (word: $0, distance: editDistance(word, $0)) }
  guard let best = scored.min(by: { $0.distance < $1.distance }) else { return nil }
  return best.distance <= max(1, best.word.unicodeScalars.count / 3) ? best.word : nil
}

/// Words for a message, which a schema may have in any number and of any length: `A, B, C`, or as many as fit into
/// about 500 bytes and how many more there are.
package func listing(_ words: some Collection<String>) -> String {
  var text = ""
  for (index, word) in words.enumerated() {
    guard text.utf8.count + word.utf8.count <= 500 else {
      return text + (index > 0 ? ", and " : "") + "\(words.count - index) more"
    }
    text += (index > 0 ? ", " : "") + word
  }
  return text
}

/// Insertions, deletions, replacements and swaps of neighbours that lead from one word to the
/// other; case does not count. Words beyond 128 letters are not compared.
package func editDistance(_ left: String, _ right: String) -> Int {
  let left = Array(left.lowercased().unicodeScalars)
  let right = Array(right.lowercased().unicodeScalars)
  guard max(left.count, right.count) <= 128 else { return max(left.count, right.count) }
  var beforeLast: [Int] = []
  var last = Array(0...right.count)
  for i in left.indices {
    var row = [i + 1]
    for j in right.indices {
      var distance = min(
        last[j] + (left[i] == right[j] ? 0 : 1), last[j + 1] + 1, row[j] + 1)
      if i > 0, j > 0, left[i] == right[j - 1], left[i - 1] == right[j] {
        distance = min(distance, beforeLast[j - 1] + 1)
      }
      row.append(distance)
    }
    (beforeLast, last) = (last, row)
  }
  return last[right.count]
}
