import FoundationEssentials

/// The string literals of Swift sources, and the calls that they are arguments of.
struct SourceTexts {
  /// A literal with `…` for each interpolation; literals joined by `+` are one.
  struct Literal {
    var range: Range<Int>
    var text: String

    /// Its longest piece without an interpolation, in words.
    var wordCount: Int {
      self.text.split(separator: "…").map {
        $0.split(whereSeparator: \.isWhitespace).count { $0.contains(where: \.isLetter) }
      }.max()
        ?? 0
    }
  }

  private(set) var literals: [Literal] = []
  /// The source with blanks for comments and quotes for literals.
  private var code: [UInt8]
  private var next = 0

  init(_ path: String) throws {
    self.code = Array(try Data(contentsOf: RepositoryPages.root.appending(path: path)))
    let special: Set<UInt8> = [UInt8(ascii: "/"), UInt8(ascii: "#"), Self.quote]
    while self.next < self.code.count {
      guard special.contains(self.code[self.next]) else {
        self.next += 1
        continue
      }
      if self.starts("//") {
        while self.next < self.code.count, self.code[self.next] != Self.newline { self.blank() }
      } else if self.starts("#/") {
        while !self.starts("/#") { self.blank() }
      } else if self.code[self.next] == Self.quote || self.starts("#\"") {
        let start = self.next
        let text = self.literal()
        for place in start..<self.next { self.code[place] = Self.quote }
        self.add(Literal(range: start..<self.next, text: text))
      } else {
        self.next += 1
      }
    }
  }

  /// Paths of the sources of the program: not those of the simulator, nor generated ones.
  static func paths() throws -> [String] {
    try RepositoryPages.files(in: ["Sources"], suffixes: [".swift"]).filter { path in
      !path.hasPrefix("Sources/Simulator/") && !path.contains("/PubSubMessages/")
    }
  }

  /// The literals inside the parentheses or braces after each place that matches.
  ///
  /// - Parameter pattern: ends with the opening one.
  func literals(after pattern: Regex<Substring>) -> [(place: Int, literals: [Literal])] {
    let text = String(decoding: self.code, as: UTF8.self)
    return text.matches(of: pattern).map { match in
      let place = text.utf8.distance(from: text.startIndex, to: match.range.lowerBound)
      let start = text.utf8.distance(from: text.startIndex, to: match.range.upperBound)
      let opening = self.code[start - 1]
      let closing = opening == UInt8(ascii: "(") ? UInt8(ascii: ")") : UInt8(ascii: "}")
      var (end, depth) = (start, 1)
      while depth > 0, end < self.code.count {
        depth += self.code[end] == opening ? 1 : self.code[end] == closing ? -1 : 0
        end += 1
      }
      return (place, self.literals.filter { (start..<end).contains($0.range.lowerBound) })
    }
  }

  // MARK: Scanning

  private static let newline = UInt8(ascii: "\n")
  private static let quote = UInt8(ascii: "\"")

  private func starts(_ text: String) -> Bool {
    self.code[self.next...].starts(with: text.utf8)
  }

  private mutating func blank() {
    self.code[self.next] = UInt8(ascii: " ")
    self.next += 1
  }

  private mutating func add(_ literal: Literal) {
    if let last = self.literals.last, last.range.upperBound <= literal.range.lowerBound {
      let between = self.code[last.range.upperBound..<literal.range.lowerBound]
        .filter { $0 != UInt8(ascii: " ") && $0 != Self.newline }
      if between == [UInt8(ascii: "+")] {
        self.literals[self.literals.count - 1] = Literal(
          range: last.range.lowerBound..<literal.range.upperBound, text: last.text + literal.text)
        return
      }
    }
    self.literals.append(literal)
  }

  /// Reads a literal, whose opening quote or number sign is next. Literals inside its interpolations are
  /// added.
  private mutating func literal() -> String {
    var hashes = ""
    while self.starts("#") {
      hashes += "#"
      self.next += 1
    }
    let quotes = self.starts("\"\"\"") ? "\"\"\"" : "\""
    self.next += quotes.utf8.count
    let (end, escape) = (quotes + hashes, "\\" + hashes)
    var text: [UInt8] = []
    let isQuoteOrEscape = { $0 == Self.quote || $0 == UInt8(ascii: "\\") }
    while !isQuoteOrEscape(self.code[self.next]) || !self.starts(end) {
      guard isQuoteOrEscape(self.code[self.next]), self.starts(escape) else {
        text.append(self.code[self.next])
        self.next += 1
        continue
      }
      self.next += escape.utf8.count
      if self.starts("(") {
        text += Array("…".utf8)
        self.interpolation()
      } else if self.starts("\n") {
        self.next += 1
        while self.starts(" ") { self.next += 1 }
      } else {
        text.append(self.starts("n") ? Self.newline : self.code[self.next])
        self.next += 1
      }
    }
    self.next += end.utf8.count
    return String(decoding: text, as: UTF8.self)
  }

  private mutating func interpolation() {
    var depth = 0
    repeat {
      if self.starts("\"") {
        let start = self.next
        let text = self.literal()
        self.add(Literal(range: start..<self.next, text: text))
      } else {
        depth += self.starts("(") ? 1 : self.starts(")") ? -1 : 0
        self.next += 1
      }
    } while depth > 0
  }
}
