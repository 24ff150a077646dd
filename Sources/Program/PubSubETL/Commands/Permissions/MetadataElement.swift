/// An element of a file for the Metadata API, as XML 1.0.
struct MetadataElement: Sendable, Equatable {
  enum Content: Sendable, Equatable {
    case text(String)
    case elements([MetadataElement])
  }

  var name: String
  var content: Content

  init(_ name: String, _ text: String) { (self.name, self.content) = (name, .text(text)) }

  init(_ name: String, _ flag: Bool) { self.init(name, flag ? "true" : "false") }

  init(_ name: String, _ elements: [MetadataElement]) {
    (self.name, self.content) = (name, .elements(elements))
  }

  /// The whole file with this element as its root.
  var document: String {
    var text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    self.write(
      to: &text, indentation: "",
      attributes: " xmlns=\"http://soap.sforce.com/2006/04/metadata\"")
    return text
  }

  private func write(to text: inout String, indentation: String, attributes: String = "") {
    text += "\(indentation)<\(self.name)\(attributes)>"
    switch self.content {
    case .text(let value): text += Self.escaped(value)
    case .elements(let elements):
      text += "\n"
      for element in elements { element.write(to: &text, indentation: indentation + "    ") }
      text += indentation
    }
    text += "</\(self.name)>\n"
  }

  /// By scalar: a character with a combining mark behind it is one `Character` of its own. What XML
  /// cannot hold at all becomes U+FFFD.
  private static func escaped(_ value: String) -> String {
    var result = ""
    for scalar in value.unicodeScalars {
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "\"": result += "&quot;"
      case "\r": result += "&#13;"
      case "\t", "\n": result.unicodeScalars.append(scalar)
      case _ where scalar.value < 0x20 || scalar.value == 0xFFFE || scalar.value == 0xFFFF:
        result += "\u{FFFD}"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}
