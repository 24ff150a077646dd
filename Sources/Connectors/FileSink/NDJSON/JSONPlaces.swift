internal import Bytes

/// Finds the path of a value in a JSON text: `[2]`, `.key`, `[0].Latitude`.
///
/// Used for the rare values that `_nonfinite` names. Scans the text once, so values have to be
/// requested in its order. The text is our own and therefore well-formed.
struct JSONPlaces {
  private enum Level {
    /// The number of elements begun, minus one.
    case array(Int)
    /// The key, still escaped, without its quotes.
    case object(Range<Int>)
  }

  private let text: UnsafeBufferPointer<UInt8>
  private var position = 0
  private var levels: [Level] = []
  private var isKey = false

  init(_ text: UnsafeBufferPointer<UInt8>) { self.text = text }

  /// Appends the path of the value that begins at `offset`, as part of a JSON string: keys are
  /// escaped as they are in the text.
  mutating func appendPath(to offset: Int, into output: inout ByteBuffer) {
    while self.position < offset { self.step() }
    for level in self.levels {
      switch level {
      case .array(let index):
        output.append(UInt8(ascii: "["))
        output.append(Int64(index))
        output.append(UInt8(ascii: "]"))
      case .object(let key):
        output.append(UInt8(ascii: "."))
        output.append(UnsafeBufferPointer(rebasing: self.text[key]))
      }
    }
  }

  private mutating func step() {
    let byte = self.text[self.position]
    self.position += 1
    switch byte {
    case UInt8(ascii: "["): self.levels.append(.array(0))
    case UInt8(ascii: "{"):
      self.levels.append(.object(0..<0))
      self.isKey = true
    case UInt8(ascii: "]"), UInt8(ascii: "}"): self.levels.removeLast()
    case UInt8(ascii: ","):
      switch self.levels.last {
      case .array(let index): self.levels[self.levels.count - 1] = .array(index + 1)
      case .object: self.isKey = true
      case nil: break
      }
    case UInt8(ascii: "\""):
      let start = self.position
      while self.text[self.position] != UInt8(ascii: "\"") {
        self.position += self.text[self.position] == UInt8(ascii: "\\") ? 2 : 1
      }
      if self.isKey {
        self.levels[self.levels.count - 1] = .object(start..<self.position)
        self.isKey = false
      }
      self.position += 1
    default: break
    }
  }
}
