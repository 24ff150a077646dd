import Cryptography
import FileSink
import JSON
import Pipeline

/// Keys of the pipeline file's own: they come from the environment or a file.
extension ConfigurationReader {
  /// `key` or `key_file` of the dead letters.
  func sealingKey(_ reader: JSONReader) -> SealingKey? {
    self.keyText(reader).flatMap { self.sealingKey(reader, $0.member, $0.text) }
  }

  /// The text of `key` or `key_file`, without line end; nil when there is none, or it is reported.
  func keyText(_ reader: JSONReader) -> (member: String, text: String)? {
    let value = reader.any("key")
    let text = Kind<String>.text.read(reader, "key", false)
    let file = Kind<String>.secretFile.read(reader, "key_file", false)
    if value != nil, reader.has("key_file") {
      reader.report("key_file", "either key_file or key, not both")
      return nil
    }
    if let file {
      guard let bytes = self.content(reader, "key_file", ofFile: file) else { return nil }
      let text = String(decoding: bytes, as: UTF8.self)
      let line = String(text.prefix { !$0.isNewline })
      guard text.utf8.count <= line.utf8.count + 2 else {
        reader.report("key_file", "the file \(file) has more than one line")
        return nil
      }
      self.secrets.add(line)
      return ("key_file", line)
    }
    guard let text else { return nil }
    guard value?.holdsSubstitution == true else {
      reader.report("key", Self.writtenOut("key"))
      return nil
    }
    return ("key", text)
  }

  /// A stage as it is made: the key that it names with `key_file` is in `key`.
  func withKey(_ reader: JSONReader) -> JSONValue {
    var stage = reader.value
    guard let members = stage.members, members.contains(where: { $0.name.hasPrefix("key") }),
      let found = self.keyText(reader)
    else { return stage }
    stage.content = .object(
      members.map { member in
        guard member.name == found.member else { return member }
        var key = member
        key.name = "key"
        key.value.content = .string(found.text)
        key.value.holdsSubstitution = true
        return key
      })
    return stage
  }

  fileprivate static func writtenOut(_ member: String) -> String {
    "a key is not written into the pipeline file, which others read; put it into an environment "
      + "variable or a file, and write \(member == "key" ? "" : "[")\"${NAME}\""
      + "\(member == "key" ? " or use key_file" : "] or [\"${file:/path}\"]")"
  }

  fileprivate func sealingKey(
    _ reader: JSONReader, _ member: String, _ text: String, number: Int? = nil
  ) -> SealingKey? {
    if let key = SealingKey(text: text) { return key }
    let which = number.map { "element \($0) is" } ?? "the value is"
    reader.report(
      member,
      "\(which) not a key of 32 bytes, as 64 hexadecimal digits or base64; make one with "
        + "openssl rand -hex 32")
    return nil
  }
}

extension Kind<[SealingKey]> {
  static var oldKeys: Self {
    Self(.list(of: .reference("variable"), minCount: 1)) { reader, name, _ in
      guard let elements = reader.elements(name) else { return nil }
      let configuration = reader.configuration
      return elements.enumerated().compactMap { index, element in
        guard let text = element.value.string, element.value.holdsSubstitution else {
          reader.report(name, ConfigurationReader.writtenOut(name))
          return nil
        }
        configuration.secrets.add(text)
        return configuration.sealingKey(reader, name, text, number: index)
      }
    }
  }
}
