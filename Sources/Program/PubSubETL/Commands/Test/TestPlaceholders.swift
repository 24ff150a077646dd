import JSON
import Pipeline

/// Placeholders for values of a pipeline file that only connections and stored files need: logins,
/// addresses of databases, keys. So a test needs no secrets and runs alike on every machine.
enum TestPlaceholders {
  /// Values of variables that no test sets.
  static let variable = "not-set"

  /// Good for seals, too, which need 32 bytes. The same everywhere, or hashes would differ.
  private static let key = String(repeating: "00", count: 32)

  private static let org: JSONValue = [
    "auth": [
      "type": "token", "instance_url": "https://not-set.invalid", "access_token": "not-set",
    ]
  ]

  /// - Parameter variables: those that the test file sets; they stay.
  static func replace(in document: inout JSONValue, variables: [String: String]) {
    let isSet = { (text: String) in variables.keys.contains { text.contains("${\($0)") } }
    Self.change("source", in: &document) { Self.set("org", Self.org, in: &$0) }
    Self.change("dead_letter", in: &document) { letters in
      Self.remove("old_keys", from: &letters)
      Self.replaceKey(in: &letters, isSet)
    }
    Self.changeElements("stages", in: &document) { Self.replaceKey(in: &$0, isSet) }
    var number = 0
    Self.changeElements("sinks", in: &document) { sink in
      Self.changeElements("stages", in: &sink) { Self.replaceKey(in: &$0, isSet) }
      number += 1
      guard let url = sink["url"]?.string, url.contains("${"), !isSet(url) else { return }
      // A number, since two sinks cannot write to one place.
      Self.set("url", .string("postgresql://127.0.0.1/not-set\(number)"), in: &sink)
    }
  }

  /// A key that the test file sets stays; files with keys are not read.
  private static func replaceKey(in object: inout JSONValue, _ isSet: (String) -> Bool) {
    let hasFile = object["key_file"] != nil
    guard hasFile || object["key"]?.string.map({ $0.contains("${") && !isSet($0) }) == true,
      // Both is a mistake of the pipeline file's.
      !(hasFile && object["key"] != nil)
    else { return }
    Self.remove("key_file", from: &object)
    Self.set("key", .string("${NOT_SET:-\(Self.key)}"), in: &object)
  }

  private static func change(
    _ name: String, in object: inout JSONValue, _ body: (inout JSONValue) -> Void
  ) {
    guard var value = object[name], value.members != nil else { return }
    body(&value)
    Self.set(name, value, in: &object)
  }

  private static func changeElements(
    _ name: String, in object: inout JSONValue, _ body: (inout JSONValue) -> Void
  ) {
    guard var value = object[name], var elements = value.array else { return }
    for index in elements.indices { body(&elements[index]) }
    value.content = .array(elements)
    Self.set(name, value, in: &object)
  }

  private static func set(_ name: String, _ value: JSONValue, in object: inout JSONValue) {
    guard var members = object.members else { return }
    if let index = members.firstIndex(where: { $0.name == name }) {
      members[index].value = value
    } else {
      members.append(JSONMember(name, value))
    }
    object.content = .object(members)
  }

  private static func remove(_ name: String, from object: inout JSONValue) {
    guard let members = object.members else { return }
    object.content = .object(members.filter { $0.name != name })
  }
}
