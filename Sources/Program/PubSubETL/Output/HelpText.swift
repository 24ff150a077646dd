import ArgumentParser

/// The help of a command in the order of manual pages: usage, what the command does, options, examples.
enum HelpText {
  /// The line of a command's `discussion` after which its examples follow.
  static let examples = "EXAMPLES:"
  private static let overview = "OVERVIEW: "
  private static let usage = "\n\nUSAGE: "

  /// - Parameter text: what `ArgumentParser` makes of a command. Other text is returned as it is.
  static func arranged(_ text: String) -> String {
    guard text.hasPrefix(Self.overview), let usage = text.firstRange(of: Self.usage) else {
      return text
    }
    var about = text[..<usage.lowerBound].dropFirst(Self.overview.count)
    let rest = text[usage.lowerBound...].dropFirst(2)
    let end = rest.firstRange(of: "\n\n")?.lowerBound ?? rest.endIndex
    var examples: Substring = ""
    if let start = about.firstRange(of: "\n\(Self.examples)\n") {
      examples = about[start.lowerBound...].dropFirst()
      about = about[..<start.lowerBound]
    }
    var parts = [rest[..<end], about, rest[end...]].map { Self.trimmed($0) }
    if !examples.isEmpty { parts.append(Self.trimmed(examples)) }
    return parts.filter { !$0.isEmpty }.joined(separator: "\n\n")
  }

  private static func trimmed(_ text: Substring) -> Substring {
    let start = text.drop { $0 == "\n" }
    guard let last = start.lastIndex(where: { !$0.isWhitespace }) else { return "" }
    return start[...last]
  }
}
