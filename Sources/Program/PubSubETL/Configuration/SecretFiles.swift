import JSON

/// Collects the files that contain secrets of a configuration.
final class SecretFiles {
  /// Absolute paths, in the order in which they were found.
  private(set) var paths: [String] = []
  /// Absolute paths of all files that were read, whatever they hold.
  private(set) var inputs: [String] = []

  func insert(_ path: String) {
    if !self.paths.contains(path) { self.paths.append(path) }
    self.insert(input: path)
  }

  func insert(input path: String) {
    if !self.inputs.contains(path) { self.inputs.append(path) }
  }

  /// A document is such a file itself when a secret is written out in it.
  ///
  /// - Parameter value: before its variables are replaced.
  func note(_ value: JSONValue, of file: String) {
    self.insert(input: file)
    if Self.holdsSecret(value) { self.insert(file) }
  }

  private static func holdsSecret(_ value: JSONValue) -> Bool {
    switch value.content {
    case .object(let members):
      members.contains { member in
        guard Secret.keys.contains(member.name), let text = member.value.string else {
          return member.name != "//" && Self.holdsSecret(member.value)
        }
        // The address of a database or proxy is one only with a password in it.
        return !text.isEmpty && !text.contains("${")
          && (member.name != "url" || Self.holdsPassword(text))
      }
    case .array(let elements): elements.contains(where: Self.holdsSecret)
    case .null, .boolean, .number, .string: false
    }
  }

  private static func holdsPassword(_ url: String) -> Bool {
    if url.contains("password") { return true }
    guard let scheme = url.firstRange(of: "://"), let end = url.lastIndex(of: "@"),
      scheme.upperBound < end
    else { return false }
    return url[scheme.upperBound..<end].contains(":")
  }
}
