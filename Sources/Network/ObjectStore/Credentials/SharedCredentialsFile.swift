/// The file of credentials that the AWS tools share: sections in brackets with lines `name = value`.
struct SharedCredentialsFile {
  /// Values by profile and name, whose case does not count.
  private(set) var profiles: [String: [String: String]] = [:]

  /// Lines that are neither a section nor a value are skipped, as the AWS tools do. So are indented
  /// lines, which belong to a value that has several.
  init(_ text: String) {
    var profile: String?
    for line in text.split(whereSeparator: \.isNewline) {
      guard let first = line.first, !first.isWhitespace, !"#;".contains(first) else { continue }
      if first == "[" {
        profile = line.firstIndex(of: "]").map { Self.trimmed(line[..<$0].dropFirst()) }
        if let profile, self.profiles[profile] == nil { self.profiles[profile] = [:] }
        continue
      }
      guard let profile, let equals = line.firstIndex(of: "=") else { continue }
      let name = Self.trimmed(line[..<equals]).lowercased()
      self.profiles[profile]?[name] = Self.trimmed(line[line.index(after: equals)...])
    }
  }

  private static func trimmed(_ text: Substring) -> String {
    let end = text.drop(while: \.isWhitespace)
    return String(end.reversed().drop(while: \.isWhitespace).reversed())
  }
}
