import FoundationEssentials
import Glibc
import JSON
import TestSupport
import Testing

@testable import PubSubETL

/// What has to hold of every key, wherever it is declared.
@Suite("Keys of pipeline files")
struct KeyDeclarationTests {
  private struct Place: CustomStringConvertible {
    var path: String
    var key: KeyDeclaration
    var description: String { self.path }
  }

  /// Each key of each object; those of alternatives have the same path.
  private let places: [Place]
  private let files: SigningKeyFiles
  private let environment: Environment

  init() throws {
    func places(_ keys: [KeyDeclaration], _ path: String) -> [Place] {
      keys.flatMap { key in
        let place = Place(path: "\(path)/\(key.name)", key: key)
        return [place] + key.objects.flatMap { places($0, place.path) }
      }
    }
    self.places = places(PipelineConfiguration.declarations, "")
    self.files = try SigningKeyFiles()
    // The files that examples name.
    let key = try Self.text(self.files.privateKey)
    let certificate = try Self.text(self.files.certificate)
    let org =
      #"{"auth": {"type": "token", "instance_url": "https://a.my.salesforce.com", "access_token": "t"}}"#
    for (name, text) in [
      ("org.json", org), ("ca.pem", certificate), ("client.pem", certificate), ("client.key", key),
      ("salesforce.pem", key),
    ] {
      try Data(text.utf8).write(to: URL(filePath: self.files.path(name)))
    }
    let digits = String(repeating: "0f", count: 32)
    self.environment = Environment([
      "NOTIFY_SECRET": "secret",
      "SF_CLIENT_ID": "id", "SF_CLIENT_SECRET": "secret", "SF_PRIVATE_KEY": key,
      "SF_REFRESH_TOKEN": "token", "SF_ACCESS_TOKEN": "token", "DEAD_LETTER_KEY": digits,
      "OLD_DEAD_LETTER_KEY": digits, "MASK_KEY": digits, "LOADER_GROUP": "\(getegid())",
    ])
  }

  private static func text(_ file: String) throws -> String {
    String(decoding: try SigningKeyFiles.content(file), as: UTF8.self)
  }

  /// What the reader of a key says about a value.
  private func mistakes(
    _ place: Place, _ value: JSONValue, _ environment: Environment? = nil
  ) -> [String] {
    let environment = environment ?? self.environment
    let mistakes = JSONMistakes()
    let secretFiles = SecretFiles()
    let base = FilePath.directory(of: self.files.privateKey)
    let document = Interpolation(
      environment: environment, base: base, mistakes: mistakes, secretFiles: secretFiles
    ).interpolate(JSONValue(.object([JSONMember(place.key.name, value)])))
    let configuration = ConfigurationReader(
      file: "\(base)/p.json", base: base, environment: environment, secretFiles: secretFiles)
    place.key.check(JSONReader(document, mistakes: mistakes, context: configuration))
    return mistakes.all.map(\.description) + configuration.mistakesOfOtherFiles.map(\.description)
  }

  @Test("Each key has a description, and an example that its reader accepts")
  func examples() throws {
    #expect(self.places.count > 150)
    for place in self.places {
      #expect(!place.key.description.isEmpty, "\(place)")
      guard let example = place.key.example else {
        Issue.record("\(place) has no example")
        continue
      }
      #expect(self.mistakes(place, example) == [], "\(place)")
    }
  }

  @Test("Each default is accepted by the reader")
  func defaults() throws {
    for place in self.places {
      guard let fallback = place.key.fallback, fallback.string != "" else { continue }
      #expect(self.mistakes(place, fallback) == [], "\(place)")
    }
  }

  @Test("Values beyond a range are refused by the reader, and numbers by the schema")
  func ranges() throws {
    var count = 0
    for place in self.places {
      for value in Self.excluded(place.key) {
        count += 1
        #expect(self.mistakes(place, value).count == 1, "\(place): \(value.text())")
        if value.string == nil {
          #expect(!self.accepts(place.key.schema.value, value), "\(place): \(value.text())")
        } else {
          // Patterns cannot compare times, so the description has the range.
          #expect(place.key.description.contains(" to "), "\(place)")
        }
      }
    }
    #expect(count > 40)
  }

  /// Values just beyond the numbers of the schema and the times of the description.
  private static func excluded(_ key: KeyDeclaration) -> [JSONValue] {
    let forms = key.schema.value["oneOf"]?.array ?? [key.schema.value]
    let numbers = forms.flatMap { form -> [JSONValue?] in
      switch form["type"]?.string {
      case "integer":
        return [(form["minimum"], -1 as Int64), (form["maximum"], 1)].map { bound, step in
          bound?.integer.map { .integer(Int($0 + step)) }
        }
      case "number": return [JSONValue(.number("-0.01")), JSONValue(.number("1.01"))]
      default: return []
      }
    }
    guard let range = key.description.firstMatch(of: /(\S+) to (\S+)\.$/),
      let least = JSONReader.duration(String(range.1)),
      let most = JSONReader.duration(String(range.2))
    else { return numbers.compactMap(\.self) }
    return [least - .milliseconds(1), most + .milliseconds(1)].filter { $0 > .zero }.map {
      .string("\($0 / .milliseconds(1))".replacing(".0", with: "") + "ms")
    }
  }

  /// Whether a schema accepts a number.
  private func accepts(_ schema: JSONValue, _ value: JSONValue) -> Bool {
    if let name = schema["$ref"]?.string?.split(separator: "/").last {
      let definition = PipelineSchema.document["definitions"]?[String(name)]
      return definition.map { self.accepts($0, value) } ?? false
    }
    if let alternatives = schema["oneOf"]?.array {
      return alternatives.contains { self.accepts($0, value) }
    }
    guard case .number(let text) = value.content, let number = Double(text),
      ["integer", "number"].contains(schema["type"]?.string)
    else { return false }
    func bound(_ name: String) -> Double? {
      guard case .number(let text) = schema[name]?.content else { return nil }
      return Double(text)
    }
    return number >= bound("minimum") ?? -.infinity && number <= bound("maximum") ?? .infinity
  }

  @Test(
    "No message shows the value of a variable, whatever key has it",
    arguments: [
      "c4nary", "c4nary 1", "/c4nary/x", "~/c4nary", "c4nary(1) == 'c4nary'", "https://c4nary:x",
      "http://u:p@c4nary/?q", "12c4nary", "0.5c4nary", "${c4nary}", "/data/c4nary", "c4nary\u{1}",
      String(repeating: "c4nary", count: 20), "x//c4nary/../c4nary1//c4nary2",
    ])
  func hiddenValues(text: String) {
    let environment = Environment(["CANARY": text])
    for place in self.places {
      for value in [
        JSONValue("${CANARY}"), ["${CANARY}"], [["${CANARY}"]], ["x": "${CANARY}"], "x${CANARY}",
        ["field": "${CANARY}"], ["type": "${CANARY}"], ["${CANARY}", "${CANARY}"],
      ] {
        let said = self.mistakes(place, value, environment).filter { $0.contains("c4nary") }
        #expect(said == [], "\(place): \(value.text())")
      }
    }
  }

  @Test("Keys with secrets are those that the program hides")
  func secrets() {
    func names(_ keys: [KeyDeclaration], _ kinds: Set<KeyDeclaration.Secrecy>) -> [String] {
      keys.flatMap { key in
        (kinds.contains(key.secrecy) ? [key.name] : [])
          + key.objects.flatMap { names($0, kinds) }
      }
    }
    let all = PipelineConfiguration.declarations
    #expect(
      Secret.keys == Set(names(all, [.secret, .addressWithPassword])).union(["password"]))
    #expect(Secret.urlKeys == Set(names(all, [.addressWithPassword, .address])))
  }
}
