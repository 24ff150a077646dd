/// An HTML page in the making. Texts of others are cleaned and escaped on their way in, and nothing else can
/// get into it: the names of elements and attributes are literals.
struct HTMLPage {
  private(set) var source = ""
  private let secrets: SecretMask

  init(hiding secrets: SecretMask) { self.secrets = secrets }

  /// Adds what only this program writes, such as the document type.
  mutating func markup(_ literal: StaticString) { self.source += literal.description }

  mutating func text(_ text: String) { self.source += self.escaped(text) }

  /// - Parameters:
  ///   - attributes: their values are escaped.
  ///   - content: adds what is inside of the element; nil for one that can have nothing inside.
  mutating func element(
    _ name: StaticString, _ attributes: KeyValuePairs<StaticString, String> = [:],
    _ content: ((inout HTMLPage) -> Void)? = nil
  ) {
    self.source += "<\(name)"
    for (attribute, value) in attributes {
      self.source += " \(attribute)=\"\(self.escaped(value))\""
    }
    self.source += ">"
    guard let content else { return }
    content(&self)
    self.source += "</\(name)>"
  }

  /// An element with a text.
  mutating func element(
    _ name: StaticString, _ attributes: KeyValuePairs<StaticString, String> = [:], text: String
  ) {
    self.element(name, attributes) { $0.text(text) }
  }

  private func escaped(_ text: String) -> String {
    let (beginning, missing) = PrintableText.beginning(of: text, hiding: self.secrets)
    var result = ""
    for scalar in PrintableText.line(beginning, missing: missing).unicodeScalars {
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "\"": result += "&quot;"
      case "'": result += "&#39;"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}
