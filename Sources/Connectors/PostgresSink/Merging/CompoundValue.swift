/// The value of a record that was not flattened, in a column of type `jsonb` or `text`: an object
/// of its parts. An update has only the parts that it changes.
enum CompoundValue {
  /// The version byte that precedes the text of `jsonb` in binary format.
  private static let jsonbVersion: UInt8 = 1

  static func isObject(_ value: UnsafeBufferPointer<UInt8>) -> Bool {
    Self.text(value).first == UInt8(ascii: "{")
  }

  /// Merges the parts of an update into the value. Nil if either is not an object (a business
  /// account's name is a string); the update then replaces the value.
  ///
  /// Parts keep the order in which they first came, so the order in which updates are merged does
  /// not matter. The merge is one level deep, because an update has nested records as a whole.
  static func merged(
    _ parts: UnsafeBufferPointer<UInt8>, into base: UnsafeBufferPointer<UInt8>
  ) -> [UInt8]? {
    guard Self.isObject(parts), Self.isObject(base) else { return nil }
    var merged: [UInt8] = []
    merged.reserveCapacity(parts.count + base.count)
    if parts.first == Self.jsonbVersion { merged.append(Self.jsonbVersion) }
    merged.append(UInt8(ascii: "{"))
    let (old, new) = (Self.text(base), Self.text(parts))
    var isFirst = true
    func append(_ key: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>) {
      if !isFirst { merged.append(UInt8(ascii: ",")) }
      isFirst = false
      merged.append(contentsOf: key)
      merged.append(UInt8(ascii: ":"))
      merged.append(contentsOf: value)
    }
    var members = ObjectMembers(old)
    while let (key, value) = members.next() {
      append(key, ObjectMembers.value(of: key, in: new) ?? value)
    }
    members = ObjectMembers(new)
    while let (key, value) = members.next() {
      if ObjectMembers.value(of: key, in: old) == nil { append(key, value) }
    }
    merged.append(UInt8(ascii: "}"))
    return merged
  }

  private static func text(
    _ value: UnsafeBufferPointer<UInt8>
  ) -> UnsafeBufferPointer<UInt8> {
    value.first == Self.jsonbVersion
      ? UnsafeBufferPointer(rebasing: value.dropFirst()) : value
  }
}

/// Iterates over the members of a JSON object that we or the server wrote: well-formed, with or
/// without spaces. Compound fields have at most a dozen parts, so a search starts at the first.
private struct ObjectMembers {
  private let text: UnsafeBufferPointer<UInt8>
  private var place = 1

  init(_ text: UnsafeBufferPointer<UInt8>) { self.text = text }

  /// Key, with its quotes, and value; nil at the end.
  mutating func next() -> (
    key: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>
  )? {
    self.skip { $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "}") }
    guard self.place < self.text.count, self.text[self.place] == UInt8(ascii: "\"") else {
      return nil
    }
    let key = self.place
    self.skipString()
    let keyEnd = self.place
    self.skip { $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: " ") }
    let value = self.place
    self.skipValue()
    return (
      UnsafeBufferPointer(rebasing: self.text[key..<keyEnd]),
      UnsafeBufferPointer(rebasing: self.text[value..<self.place])
    )
  }

  static func value(
    of key: UnsafeBufferPointer<UInt8>, in text: UnsafeBufferPointer<UInt8>
  ) -> UnsafeBufferPointer<UInt8>? {
    var members = ObjectMembers(text)
    while let member = members.next() {
      if member.key.elementsEqual(key) { return member.value }
    }
    return nil
  }

  private mutating func skip(while condition: (UInt8) -> Bool) {
    while self.place < self.text.count, condition(self.text[self.place]) { self.place += 1 }
  }

  /// Reads from the opening quote through the closing one.
  private mutating func skipString() {
    self.place += 1
    while self.place < self.text.count, self.text[self.place] != UInt8(ascii: "\"") {
      self.place += self.text[self.place] == UInt8(ascii: "\\") ? 2 : 1
    }
    self.place = min(self.place + 1, self.text.count)
  }

  /// Reads up to the comma or brace that ends the member.
  private mutating func skipValue() {
    var depth = 0
    while self.place < self.text.count {
      switch self.text[self.place] {
      case UInt8(ascii: "\""):
        self.skipString()
        continue
      case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        if depth == 0 { return }
        depth -= 1
      case UInt8(ascii: ","):
        if depth == 0 { return }
      default: break
      }
      self.place += 1
    }
  }
}
