/// Something in a JSON document that its reader does not accept.
public struct JSONMistake: Sendable, Equatable {
  /// The place in the document, as a JSON pointer (RFC 6901): `/sinks/0/type`; empty for the whole.
  public var path: String
  /// The place in the text; line 0 for a value that did not come from the text.
  public var position: JSONValue.Position
  /// What is wrong and what is accepted, without the path.
  public var message: String
  /// A known key was most likely meant, so other mistakes may follow from this one.
  var isMisspelledKey = false

  public init(path: String, position: JSONValue.Position, message: String) {
    self.path = path
    self.position = position
    self.message = message
  }
}

extension JSONMistake: CustomStringConvertible {
  /// `/sinks/0/type: unknown sink 'kafka'; known: files`
  public var description: String {
    self.path.isEmpty ? self.message : "\(self.path): \(self.message)"
  }
}

/// Collects the mistakes of one document, in the order in which they are found.
///
/// One per path: later ones at the same place mostly follow from the first (a variable that is not
/// set leaves an empty text behind).
public final class JSONMistakes {
  public private(set) var all: [JSONMistake] = []
  private var paths: Set<String> = []

  public init() {}

  public var isEmpty: Bool { self.all.isEmpty }

  public func append(_ mistake: JSONMistake) {
    if self.paths.insert(mistake.path).inserted { self.all.append(mistake) }
  }

  /// In the order of the text, those without a place last. Misspelled keys come first, because a
  /// key that is missing has consequences elsewhere.
  public var inTextOrder: [JSONMistake] {
    func key(_ mistake: JSONMistake) -> (Int, Int, Int) {
      let position = mistake.position
      return (
        mistake.isMisspelledKey ? 0 : 1, position.line == 0 ? .max : position.line,
        position.column
      )
    }
    // The sort of the standard library is stable.
    return self.all.sorted { key($0) < key($1) }
  }
}
