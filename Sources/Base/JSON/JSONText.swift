/// A JSON text whose values can be changed while everything else keeps its layout: white space, the order
/// of members, the form of numbers and escapes.
///
/// The text has been parsed before; what it was parsed to has the places of its values.
package struct JSONText {
  private let bytes: [UInt8]
  /// The offset of each line's first character.
  private let lineStarts: [Int]
  /// The author's indentation of one level.
  private let indentation: [UInt8]
  private let lineEnd: [UInt8]

  /// - Parameters:
  ///   - bytes: what `document` was parsed from.
  ///   - document: has the positions that the parser gave it.
  package init(_ bytes: [UInt8], parsedTo document: JSONValue) {
    self.bytes = bytes
    var lineStarts = [bytes.starts(with: Self.byteOrderMark) ? Self.byteOrderMark.count : 0]
    for (offset, byte) in bytes.enumerated() where byte == Self.newline {
      lineStarts.append(offset + 1)
    }
    self.lineStarts = lineStarts
    self.lineEnd =
      bytes.contains(Self.carriageReturn) ? [Self.carriageReturn, Self.newline] : [Self.newline]
    let first = document.members?.first?.namePosition ?? document.array?.first?.position
    let indentation = first.map { place in
      bytes[lineStarts[place.line - 1]...].prefix { $0 == Self.space || $0 == Self.tab }
    }
    self.indentation =
      indentation.flatMap { $0.isEmpty ? nil : Array($0) } ?? [Self.space, Self.space]
  }

  /// The text with another document in it.
  ///
  /// Members and elements that are in both do not change by a byte.
  package func replacing(_ old: JSONValue, with new: JSONValue) -> [UInt8] {
    let start = self.offset(of: old.position)
    var result = Array(self.bytes[..<start])
    self.append(old, new, to: &result)
    result += self.bytes[self.end(ofValueAt: start)...]
    return result
  }

  // MARK: Values

  /// A member or an element.
  private struct Part {
    /// Nil for an element.
    var name: String?
    var value: JSONValue
    /// Where it begins in the text, with its name.
    var start: Int
    /// Behind its value.
    var end: Int
  }

  private func append(_ old: JSONValue, _ new: JSONValue, to result: inout [UInt8]) {
    let start = self.offset(of: old.position)
    guard old != new else {
      result += self.bytes[start..<self.end(ofValueAt: start)]
      return
    }
    switch (old.content, new.content) {
    case (.object(let members), .object(let others)):
      let kept = members.filter { member in others.contains { $0.name == member.name } }
      let names = others.map(\.name)
      // New members follow the existing ones, or the order has changed.
      guard !kept.isEmpty, Array(names.prefix(kept.count)) == kept.map(\.name) else { break }
      let parts = members.map { self.part($0.value, named: $0.name, at: $0.namePosition) }
      self.append(
        parts, others.map { (name: $0.name, value: $0.value) },
        keeping: { part in others.contains { $0.name == part.name } }, from: start, to: &result)
      return
    case (.array(let elements), .array(let others)):
      guard !elements.isEmpty, !others.isEmpty else { break }
      let parts = elements.map { self.part($0, named: nil, at: $0.position) }
      var index = 0
      self.append(
        parts, others.map { (name: nil, value: $0) },
        keeping: { _ in
          defer { index += 1 }
          return index < others.count
        }, from: start, to: &result)
      return
    default: break
    }
    result += self.rendered(new, indentation: self.indentation(ofLineAt: start))
  }

  private func part(
    _ value: JSONValue, named name: String?, at position: JSONValue.Position
  ) -> Part {
    Part(
      name: name, value: value, start: self.offset(of: position),
      end: self.end(ofValueAt: self.offset(of: value.position)))
  }

  /// Appends an object or array: the parts that are kept, in place of which come the first of the new
  /// ones, and the rest behind them.
  private func append(
    _ old: [Part], _ new: [(name: String?, value: JSONValue)], keeping isKept: (Part) -> Bool,
    from start: Int, to result: inout [UInt8]
  ) {
    let leading = self.bytes[start..<old[0].start]
    let between =
      old.count > 1
      ? Array(self.bytes[old[0].end..<old[1].start])
      : [UInt8(ascii: ",")] + (leading.count > 1 ? leading.dropFirst() : [Self.space])
    let indentation = self.indentation(ofLineAt: old[0].start)
    result += leading
    var count = 0
    var previous: Int?
    for (index, part) in old.enumerated() where isKept(part) {
      if let previous {
        result +=
          previous == index - 1 ? Array(self.bytes[old[previous].end..<part.start]) : between
      }
      previous = index
      result += self.bytes[part.start..<self.offset(of: part.value.position)]
      self.append(part.value, new[count].value, to: &result)
      count += 1
    }
    for (name, value) in new[count...] {
      result += between
      if let name { result += "\(JSONValue.string(name).text()): ".utf8 }
      result += self.rendered(value, indentation: indentation)
    }
    // The loop above has kept one part at least.
    let last = old[old.count - 1].end
    result += self.bytes[last..<self.end(ofValueAt: start)]
  }

  /// A value that the text did not have.
  private func rendered(_ value: JSONValue, indentation: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    // A string of JSON has no line ends, so each begins a line of the layout.
    for (number, line) in value.text(.folded).utf8.split(separator: Self.newline).enumerated() {
      let depth = line.prefix { $0 == Self.space }.count / 2
      if number > 0 { result += self.lineEnd + indentation }
      for _ in 0..<depth { result += self.indentation }
      result += line.dropFirst(2 * depth)
    }
    return result
  }

  // MARK: Places

  private func offset(of position: JSONValue.Position) -> Int {
    precondition(position.line > 0, "a value that did not come from the text")
    var offset = self.lineStarts[position.line - 1]
    for _ in 1..<position.column {
      offset += 1
      while self.bytes[offset] & 0xC0 == 0x80 { offset += 1 }
    }
    return offset
  }

  private func end(ofValueAt start: Int) -> Int {
    var depth = 0
    var offset = start
    while offset < self.bytes.count {
      switch self.bytes[offset] {
      case UInt8(ascii: "\""):
        offset += 1
        while self.bytes[offset] != UInt8(ascii: "\"") {
          offset += self.bytes[offset] == UInt8(ascii: "\\") ? 2 : 1
        }
        if depth == 0 { return offset + 1 }
      case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        // The end of what holds a number or word.
        if depth == 0 { return offset }
        depth -= 1
        if depth == 0 { return offset + 1 }
      case UInt8(ascii: ","), Self.space, Self.tab, Self.newline, Self.carriageReturn:
        if depth == 0 { return offset }
      default: break
      }
      offset += 1
    }
    return offset
  }

  private func indentation(ofLineAt offset: Int) -> [UInt8] {
    let start = self.lineStarts.last { $0 <= offset } ?? 0
    return Array(self.bytes[start...].prefix { $0 == Self.space || $0 == Self.tab })
  }

  private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]
  private static let newline = UInt8(ascii: "\n")
  private static let carriageReturn = UInt8(ascii: "\r")
  private static let space = UInt8(ascii: " ")
  private static let tab = UInt8(ascii: "\t")
}
