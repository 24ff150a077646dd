internal import Bytes

/// An element of one of the small XML documents with which a store answers.
struct XMLElement {
  /// Without the prefix of its namespace.
  var name: String
  /// The characters directly inside, without those of `children`.
  var text = ""
  var children: [XMLElement] = []

  init(name: String) { self.name = name }

  /// The text of the first child of that name.
  subscript(_ name: String) -> String? { self.child(name)?.text }

  func child(_ name: String) -> XMLElement? { self.children.first { $0.name == name } }

  func all(_ name: String) -> [XMLElement] { self.children.filter { $0.name == name } }
}

/// A text that is not an XML document of the kind that is read here.
struct XMLError: Error, CustomStringConvertible {
  /// Without a part of the text.
  var description: String
}

extension XMLElement {
  /// Parses a document (XML 1.0) without a document type. Attributes are checked and dropped.
  init(parsing bytes: [UInt8]) throws(XMLError) {
    var parser = XMLParser(bytes)
    self = try parser.document()
  }
}

/// A recursive-descent parser; one function per rule of the grammar.
private struct XMLParser {
  private let text: [UInt8]
  private var offset = 0
  private var elementCount = 0

  private static let maxDepth = 16
  /// A page of a listing has 1,000 objects of about ten elements.
  private static let maxElements = 100_000

  init(_ text: [UInt8]) { self.text = text }

  mutating func document() throws(XMLError) -> XMLElement {
    guard String(validating: self.text, as: UTF8.self) != nil else {
      throw XMLError(description: "the text is not UTF-8")
    }
    _ = self.skip("\u{FEFF}")
    try self.miscellany()
    let root = try self.element(depth: 0)
    try self.miscellany()
    guard self.offset == self.text.count else { throw self.error("text after the document") }
    return root
  }

  /// Space, comments, declarations and processing instructions.
  private mutating func miscellany() throws(XMLError) {
    while true {
      self.space()
      if self.skip("<?") {
        _ = try self.until("?>")
      } else if self.skip("<!--") {
        _ = try self.until("-->")
      } else {
        return
      }
    }
  }

  private mutating func element(depth: Int) throws(XMLError) -> XMLElement {
    guard depth < Self.maxDepth else { throw self.error("more than \(Self.maxDepth) levels") }
    self.elementCount += 1
    guard self.elementCount <= Self.maxElements else {
      throw self.error("more than \(Self.maxElements) elements")
    }
    guard self.skip("<") else { throw self.error("an element was expected") }
    let name = try self.name()
    var element = XMLElement(name: Self.local(name))
    if try self.attributes() { return element }
    var text: [UInt8] = []
    while true {
      if self.skip("</") {
        guard try self.name() == name else { throw self.error("another element is open") }
        self.space()
        guard self.skip(">") else { throw self.error("'>' was expected") }
        // It is UTF-8: the document is, and it was cut between ASCII characters only.
        element.text = String(decoding: text, as: UTF8.self)
        return element
      } else if self.skip("<!--") {
        _ = try self.until("-->")
      } else if self.skip("<![CDATA[") {
        text += try self.until("]]>")
      } else if self.skip("<?") {
        _ = try self.until("?>")
      } else if self.next == UInt8(ascii: "<") {
        element.children.append(try self.element(depth: depth + 1))
      } else {
        try self.character(into: &text)
      }
    }
  }

  /// The rest of a start tag.
  ///
  /// - Returns: whether the element ends with it.
  private mutating func attributes() throws(XMLError) -> Bool {
    while true {
      let start = self.offset
      self.space()
      if self.skip("/>") { return true }
      if self.skip(">") { return false }
      guard self.offset > start else { throw self.error("a space or '>' was expected") }
      _ = try self.name()
      self.space()
      guard self.skip("=") else { throw self.error("'=' was expected") }
      self.space()
      guard let quote = self.next, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else {
        throw self.error("a quoted value was expected")
      }
      self.offset += 1
      var value: [UInt8] = []
      while self.next != quote { try self.character(into: &value) }
      self.offset += 1
    }
  }

  /// One byte of text, or a reference.
  private mutating func character(into text: inout [UInt8]) throws(XMLError) {
    guard let byte = self.next else { throw self.error("the document is cut off") }
    guard byte >= 0x20 || [9, 10, 13].contains(byte), byte != UInt8(ascii: "<") else {
      throw self.error("a character that is not allowed")
    }
    self.offset += 1
    guard byte == UInt8(ascii: "&") else { return text.append(byte) }
    let name = String(decoding: try self.until(";", within: 12), as: UTF8.self)
    switch name {
    case "amp": text.append(UInt8(ascii: "&"))
    case "lt": text.append(UInt8(ascii: "<"))
    case "gt": text.append(UInt8(ascii: ">"))
    case "quot": text.append(UInt8(ascii: "\""))
    case "apos": text.append(UInt8(ascii: "'"))
    default:
      guard name.hasPrefix("#"), name.utf8.dropFirst().allSatisfy({ $0.isWordCharacter }) else {
        throw self.error("an unknown reference")
      }
      let number =
        name.hasPrefix("#x") ? UInt32(name.dropFirst(2), radix: 16) : UInt32(name.dropFirst())
      guard let number, number > 0, let scalar = Unicode.Scalar(number) else {
        throw self.error("a reference to no character")
      }
      text += Array(String(scalar).utf8)
    }
  }

  private mutating func name() throws(XMLError) -> ArraySlice<UInt8> {
    let start = self.offset
    while let byte = self.next, byte.isWordCharacter || byte >= 0x80 || "-.:".utf8.contains(byte) {
      self.offset += 1
    }
    let name = self.text[start..<self.offset]
    guard let first = name.first, !"-.0123456789".utf8.contains(first) else {
      throw self.error("a name was expected")
    }
    return name
  }

  private static func local(_ name: ArraySlice<UInt8>) -> String {
    let colon = name.lastIndex(of: UInt8(ascii: ":"))
    return String(decoding: name[(colon.map { $0 + 1 } ?? name.startIndex)...], as: UTF8.self)
  }

  private var next: UInt8? { self.offset < self.text.count ? self.text[self.offset] : nil }

  private mutating func space() {
    while let byte = self.next, [9, 10, 13, 32].contains(byte) { self.offset += 1 }
  }

  private mutating func skip(_ word: String) -> Bool {
    guard self.text[self.offset...].starts(with: word.utf8) else { return false }
    self.offset += word.utf8.count
    return true
  }

  /// What is before a word, which is skipped.
  private mutating func until(
    _ word: String, within limit: Int = .max
  ) throws(XMLError) -> ArraySlice<UInt8> {
    let start = self.offset
    while self.offset < self.text.count, self.offset - start <= limit {
      let end = self.offset
      if self.skip(word) { return self.text[start..<end] }
      self.offset += 1
    }
    throw self.error("'\(word)' is missing")
  }

  private func error(_ message: String) -> XMLError {
    XMLError(description: "byte \(self.offset): \(message)")
  }
}
