import FoundationEssentials
import Testing

/// The Markdown pages of the repository, and what is in them.
struct RepositoryPages {
  static let root = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
  static let book = "Sources/Program/PubSubETL/PubSubETL.docc"

  static func text(_ path: String) throws -> String {
    String(decoding: try Data(contentsOf: Self.root.appending(path: path)), as: UTF8.self)
  }

  /// The folder of a target, below one of the floors.
  static func folder(of target: String) throws -> String {
    let sources = Self.root.appending(path: "Sources").path
    let floor = try FileManager.default.contentsOfDirectory(atPath: sources).first {
      Self.exists("Sources/\($0)/\(target)")
    }
    return "Sources/\(try #require(floor, "no floor has \(target)"))/\(target)"
  }

  static func exists(_ path: String) -> Bool {
    FileManager.default.fileExists(atPath: Self.root.appending(path: path).path)
  }

  /// Files below folders, relative to the repository.
  static func files(in folders: [String], suffixes: [String]) throws -> [String] {
    try folders.flatMap { folder in
      try FileManager.default.subpathsOfDirectory(atPath: Self.root.appending(path: folder).path)
        .filter { name in suffixes.contains(where: { name.hasSuffix($0) }) }
        .sorted().map { "\(folder)/\($0)" }
    }
  }

  /// Paths of all pages.
  static func all() throws -> [String] {
    try ["README.md"] + Self.files(in: ["Sources", ".github"], suffixes: [".md"])
  }

  /// Lines outside code blocks.
  static func prose(_ path: String) throws -> [Substring] {
    var isCode = false
    return try Self.text(path).split(separator: "\n", omittingEmptySubsequences: false).filter {
      if $0.hasPrefix("```") { isCode.toggle() }
      return !isCode && !$0.hasPrefix("```")
    }
  }

  /// Anchors of the page's headings, by the rule of GitHub.
  static func anchors(_ path: String) throws -> Set<String> {
    let headings = try Self.prose(path).filter { $0.hasPrefix("#") }
    return Set(
      headings.map { heading in
        String(
          heading.drop { $0 == "#" }.dropFirst().lowercased().compactMap { character in
            if character == " " { return "-" }
            let isKept = character.isLetter || character.isNumber || "-_".contains(character)
            return isKept ? character : nil
          })
      })
  }

  /// The targets of links to places in the repository.
  static func links(_ path: String) throws -> [String] {
    try Self.prose(path).flatMap { line in
      line.matches(of: /\]\(([^)\s]+)\)/).map { String($0.output.1) }
    }.filter { !$0.hasPrefix("http") && !$0.hasPrefix("mailto:") }
  }

  /// The path that a relative link leads to from a page.
  static func path(of link: Substring, from page: String) -> String {
    var parts = page.split(separator: "/").dropLast().map(String.init)
    for part in link.split(separator: "/") {
      if part == ".." { _ = parts.popLast() } else if part != "." { parts.append(String(part)) }
    }
    return parts.joined(separator: "/")
  }

  /// Code blocks of a language.
  static func blocks(_ path: String, language: String) throws -> [String] {
    try Self.text(path).split(separator: "```\(language)\n").dropFirst().map { text in
      String(text[..<(text.firstRange(of: "```")?.lowerBound ?? text.endIndex)])
    }
  }
}
