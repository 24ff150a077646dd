import JSON

/// Puts values of the environment into the strings of a document.
///
/// `${NAME}`: the variable; a mistake when it is not set. `${NAME:-default}`: the default when it
/// is not set or empty. `${file:/path}`: the content of a file without one line end at its end.
/// `$${` is a literal `${`; any other `$` is itself. Names of members and comments (`//`) are left
/// alone. What has been put in is not looked at again.
struct Interpolation {
  let environment: Environment
  /// Absolute directory for relative paths of `${file:…}`.
  let base: String
  let mistakes: JSONMistakes
  let secretFiles: SecretFiles
  /// Receives the name of each variable, and whether it has a default.
  var onVariable: (_ name: String, _ hasDefault: Bool) -> Void = { _, _ in }

  /// A text that is itself after the replacement.
  static func literal(_ text: String) -> String { text.replacing("${", with: "$${") }

  /// The variables of a document in its order, and whether they have a default.
  static func variables(in value: JSONValue) -> [(name: String, hasDefault: Bool)] {
    var found: [(String, Bool)] = []
    let reading = Self(
      environment: Environment([:]), base: "/", mistakes: JSONMistakes(),
      secretFiles: SecretFiles(), onVariable: { found.append(($0, $1)) })
    _ = reading.interpolate(value)
    return found
  }

  func interpolate(_ value: JSONValue, path: String = "") -> JSONValue {
    var result = value
    switch value.content {
    case .string(let text):
      guard text.utf8.contains(UInt8(ascii: "$")) else { return value }
      let (replaced, isWhole) = self.replace(in: text, of: value, path: path)
      result.content = .string(replaced)
      result.isSubstituted = isWhole
      result.holdsSubstitution = text.contains("${")
    case .array(let elements):
      result.content = .array(
        elements.enumerated().map { self.interpolate($0.element, path: "\(path)/\($0.offset)") })
    case .object(let members):
      result.content = .object(
        members.map { member in
          guard member.name != "//" else { return member }
          var member = member
          member.value = self.interpolate(
            member.value, path: JSONReader.path(path, member.name))
          return member
        })
    case .null, .boolean, .number: break
    }
    return result
  }

  /// The text with its variables replaced, and whether it was one variable and nothing else.
  private func replace(
    in text: String, of value: JSONValue, path: String
  ) -> (text: String, isWhole: Bool) {
    var result = ""
    var rest = text[...]
    var isWhole = false
    while let dollar = rest.firstIndex(of: "$") {
      result += rest[..<dollar]
      rest = rest[dollar...]
      if rest.hasPrefix("$${") {
        result += "${"
        rest = rest.dropFirst(3)
      } else if rest.hasPrefix("${") {
        guard let end = rest.firstIndex(of: "}") else {
          self.report("'${' is not closed by '}'; write '$${' for a literal '${'", value, path)
          return ("", false)
        }
        let expression = rest[rest.index(rest.startIndex, offsetBy: 2)..<end]
        isWhole = result.isEmpty && dollar == text.startIndex
        rest = rest[rest.index(after: end)...]
        isWhole = isWhole && rest.isEmpty
        result += self.value(of: expression, value, path) ?? ""
      } else {
        result += "$"
        rest = rest.dropFirst()
      }
    }
    return (result + rest, isWhole)
  }

  private func value(of expression: Substring, _ value: JSONValue, _ path: String) -> String? {
    if expression.hasPrefix("file:") {
      return self.content(ofFile: String(expression.dropFirst(5)), value, path)
    }
    let name: String
    let fallback: String?
    if let separator = expression.firstRange(of: ":-") {
      name = String(expression[..<separator.lowerBound])
      fallback = String(expression[separator.upperBound...])
    } else {
      name = String(expression)
      fallback = nil
    }
    guard Self.isName(name) else {
      let form = "write ${NAME}, ${NAME:-default} or ${file:/path}"
      self.report(
        Self.mayBePartOfSecret(name, path)
          ? "'${' is not followed by the name of a variable; \(form), or '$${' for a literal '${'"
          : "'${\(name)}' does not name a variable; \(form)", value, path)
      return nil
    }
    self.onVariable(name, fallback != nil)
    if let fallback, fallback.contains("${") {
      self.report("the default of ${\(name)} cannot contain another variable", value, path)
      return nil
    }
    if let set = self.environment.variable(name), !(set.isEmpty && fallback != nil) { return set }
    guard let fallback = fallback ?? self.environment.placeholder else {
      self.report(
        Self.mayBePartOfSecret(name, path)
          ? "a variable in it is not set; write '$${' for a literal '${'"
          : "environment variable \(name) is not set", value, path)
      return nil
    }
    return fallback
  }

  private func content(ofFile name: String, _ value: JSONValue, _ path: String) -> String? {
    guard !name.isEmpty else {
      self.report("'${file:}' does not name a file", value, path)
      return nil
    }
    guard !name.contains("${") else {
      self.report(
        "the path in ${file:…} cannot contain a variable; write the path itself", value, path)
      return nil
    }
    if let mistake = FilePath.mistake(in: name) {
      self.report("${file:…}: \(mistake)", value, path)
      return nil
    }
    let file = FilePath.resolve(name, base: self.base)
    do throws(TextFile.ReadError) {
      var bytes = try TextFile.read(file, limit: 1 << 20)
      if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
      if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
      if path.split(separator: "/").contains(where: { Secret.keys.contains(String($0)) }) {
        self.secretFiles.insert(file)
      }
      guard let text = String(validating: bytes, as: UTF8.self) else {
        self.report("the file \(file) is not UTF-8", value, path)
        return nil
      }
      return text
    } catch {
      self.report("the file \(file) \(error)", value, path)
      return nil
    }
  }

  private func report(_ message: String, _ value: JSONValue, _ path: String) {
    self.mistakes.append(JSONMistake(path: path, position: value.position, message: message))
  }

  /// A password with '${' in it looks like a variable. Those of the environment have capitals.
  private static func mayBePartOfSecret(_ name: String, _ path: String) -> Bool {
    guard let key = path.split(separator: "/").last.map(String.init),
      Secret.keys.contains(key) || Secret.urlKeys.contains(key)
    else { return false }
    return !Self.isName(name) || name.utf8.contains { $0 >= 0x61 && $0 <= 0x7A }
  }

  private static func isName(_ name: String) -> Bool {
    guard let first = name.utf8.first, first < 0x30 || first > 0x39 else { return false }
    return name.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "_"):
        true
      default: false
      }
    }
  }
}
