import JSON

/// The page `PipelineReference.md`: each key of a pipeline file with its type, default and meaning, from
/// the JSON Schema that editors use.
struct PipelineReference {
  /// The page as its file holds it.
  static var text: String {
    var reference = Self(PipelineSchema.document)
    return reference.page()
  }

  /// An object of the pipeline file that has a section of its own.
  private struct Section {
    var heading: String
    var object: JSONValue
    /// Where the object is: `source.org`; empty for the file as a whole.
    var path: String
  }

  private let document: JSONValue
  private var sections: [Section] = []
  /// Headings of definitions that are objects.
  private var headings: [String: String] = [:]
  /// Definitions that are values, in the order in which they are named.
  private var kinds: [String] = []

  private init(_ document: JSONValue) { self.document = document }

  // MARK: The page

  private mutating func page() -> String {
    self.sections = [Section(heading: "The file", object: self.document, path: "")]
    var lines = [
      "# Pipeline reference", "",
      "Each key of a pipeline file: its type, its default, what it means, and an example.", "",
      "`pubsub-etl pipeline-schema --reference` prints this page, and a test holds it to the program. "
        + "`pipelines/pipeline.schema.json` says the same to editors. Keys named `//` are comments. "
        + "Any other key that is not listed here is an error.",
    ]
    // Sections name kinds of values, and kinds of values have sections.
    var (tables, kinds): ([String], [String]) = ([], [])
    var (sectionCount, kindCount) = (0, 0)
    while sectionCount < self.sections.count || kindCount < self.kinds.count {
      if sectionCount < self.sections.count {
        tables += self.text(of: self.sections[sectionCount])
        sectionCount += 1
      } else {
        kinds += self.text(ofKind: self.kinds[kindCount])
        kindCount += 1
      }
    }
    lines += tables
    lines += [
      "", "## Kinds of values", "",
      "Texts may contain variables: `${NAME}`, `${NAME:-default}` or `${file:/path}`; `$${` stands for "
        + "`${`. A text that is one variable may also stand for a number or for true and false.",
    ]
    lines += kinds
    return lines.joined(separator: "\n") + "\n"
  }

  private mutating func text(of section: Section) -> [String] {
    var lines = ["", "## \(section.heading)", ""]
    if !section.path.isEmpty, let text = section.object["description"]?.string {
      lines += [Self.escaped(text), ""]
    }
    return lines + self.table(of: section)
  }

  private mutating func text(ofKind name: String) -> [String] {
    guard let value = self.definition(name) else { return [] }
    let title = Self.title(ofKind: name)
    let type = self.type(of: value, path: title)
    let text = value["description"]?.string.map { " \(Self.escaped($0))" } ?? ""
    return ["", "### \(title)", "", "\(Self.sentence(type))\(text)"]
  }

  private mutating func table(of section: Section) -> [String] {
    var required: Set<String> = []
    for name in section.object["required"]?.array ?? [] {
      if let name = name.string { required.insert(name) }
    }
    var lines = ["| key | type | default | meaning | example |", "|---|---|---|---|---|"]
    for member in section.object["properties"]?.members ?? [] where member.name != "//" {
      let path = section.path.isEmpty ? member.name : "\(section.path).\(member.name)"
      let type = self.type(of: member.value, path: path)
      let value = member.value["default"].map { "`\($0.text())`" }
      let fallback = required.contains(member.name) ? "required" : value ?? ""
      let text = Self.escaped(member.value["description"]?.string ?? "")
      let example = member.value["examples"]?.array?.first.map { "`\($0.text())`" } ?? ""
      let cells = ["`\(member.name)`", type, fallback, text, example]
      lines.append("| " + cells.map(Self.cell).joined(separator: " | ") + " |")
    }
    return lines
  }

  // MARK: Types

  /// A few words with links; objects get a section.
  private mutating func type(of schema: JSONValue, path: String) -> String {
    if let name = Self.definitionName(schema) { return self.type(ofDefinition: name, path: path) }
    if let constant = schema["const"] { return "`\(constant.text())`" }
    if let words = schema["enum"]?.array {
      return words.map { "`\($0.text())`" }.joined(separator: ", ")
    }
    if let alternatives = schema["oneOf"]?.array {
      return self.type(ofAlternatives: alternatives, path: path)
    }
    switch schema["type"]?.string {
    case "object": return self.type(ofObject: schema, path: path)
    case "array":
      let element = schema["items"].map { self.type(of: $0, path: "\(path)[]") } ?? "value"
      return "list of \(element)"
    case "integer":
      let (low, high) = (schema["minimum"]?.integer, schema["maximum"]?.integer)
      switch (low, high) {
      case (let low?, let high?): return "number from \(low) to \(high)"
      case (let low?, nil): return "number from \(low)"
      default: return "number"
      }
    case "number": return "number from 0 to 1"
    case "boolean": return "`true`, `false`"
    case "string": return "text"
    default: return "text, number, `true`, `false`"
    }
  }

  private mutating func type(ofDefinition name: String, path: String) -> String {
    guard let definition = self.definition(name) else { return name }
    if let members = definition["oneOf"]?.array,
      members.allSatisfy({ Self.definitionName($0).map(self.isObject) == true })
    {
      return self.type(ofAlternatives: members, path: path)
    }
    if self.isObject(name) {
      if let heading = self.headings[name] { return Self.link(heading) }
      return self.add(definition, Self.heading(definition, path: path), path, named: name)
    }
    if !self.kinds.contains(name) { self.kinds.append(name) }
    return Self.link(Self.title(ofKind: name))
  }

  private mutating func type(ofAlternatives schemas: [JSONValue], path: String) -> String {
    var types: [String] = []
    let objects = schemas.count { $0["properties"] != nil }
    for schema in schemas {
      let type =
        if objects > 1, schema["properties"]?["type"]?["const"] == nil,
          let member = schema["required"]?.array?.first?.string
        {
          self.add(schema, "\(path) with \(member)", path, named: nil)
        } else {
          self.type(of: schema, path: path)
        }
      if !types.contains(type) { types.append(type) }
    }
    return types.joined(separator: ", or ")
  }

  private mutating func type(ofObject schema: JSONValue, path: String) -> String {
    if let values = schema["additionalProperties"], values.members != nil {
      return "object of \(self.type(of: values, path: "\(path).*"))"
    }
    return self.add(schema, Self.heading(schema, path: path), path, named: nil)
  }

  private mutating func add(
    _ object: JSONValue, _ heading: String, _ path: String, named name: String?
  ) -> String {
    if let name { self.headings[name] = heading }
    if !self.sections.contains(where: { $0.heading == heading }) {
      self.sections.append(Section(heading: heading, object: object, path: path))
    }
    return Self.link(heading)
  }

  private func isObject(_ name: String) -> Bool {
    self.definition(name)?["properties"] != nil
  }

  private func definition(_ name: String) -> JSONValue? { self.document["definitions"]?[name] }

  private static func definitionName(_ schema: JSONValue) -> String? {
    schema["$ref"]?.string?.split(separator: "/").last.map { String($0) }
  }

  // MARK: Names

  /// `Stage filter` for one of several objects in a place, otherwise the place.
  private static func heading(_ object: JSONValue, path: String) -> String {
    let type = object["properties"]?["type"]?["const"]?.string
    switch (path.split(separator: ".").last, type) {
    case ("stages[]", let type?): return "Stage \(type)"
    case ("sinks[]", let type?): return "Sink \(type)"
    case ("auth", let type?): return "Login \(type)"
    default: break
    }
    // The forms of a kind of value that may be an object are named by the member that they must have.
    guard path.first?.isUppercase == true, let member = object["required"]?.array?.first?.string
    else { return path }
    return "\(path) with \(member)"
  }

  private static func title(ofKind name: String) -> String {
    switch name {
    case "byteCount": "Number of bytes"
    case "columnNames": "Column names"
    case "missing": "Missing names"
    case "setColumn": "Column to set"
    case "castColumn": "Column to cast"
    default: name.prefix(1).uppercased() + name.dropFirst()
    }
  }

  /// A link to a heading of this page, by the rule of GitHub for anchors.
  private static func link(_ heading: String) -> String {
    let anchor = heading.lowercased().compactMap { character -> Character? in
      if character == " " { return "-" }
      return character.isLetter || character.isNumber || "-_".contains(character) ? character : nil
    }
    return "[\(heading)](#\(String(anchor)))"
  }

  private static func sentence(_ text: String) -> String {
    text.prefix(1).uppercased() + text.dropFirst() + "."
  }

  /// Plain text as Markdown shows it: patterns such as `*Email*` are not emphasis.
  private static func escaped(_ text: String) -> String {
    text.split(separator: "*", omittingEmptySubsequences: false).joined(separator: "\\*")
  }

  private static func cell(_ text: String) -> String {
    text.split(separator: "|", omittingEmptySubsequences: false).joined(separator: "\\|")
  }
}
