import Cryptography
import FileSink
import JSON
import Pipeline

/// Keys of the pipeline file's own: they come from the environment or a file.
extension ConfigurationReader {
  /// `key`, `key_file` and `old_keys` of the dead letters.
  func sealingKeys(_ reader: JSONReader) -> (present: SealingKey?, old: [SealingKey]) {
    let text = self.keyText(reader)
    let present = text.flatMap { self.sealingKey(reader, $0.member, $0.text) }
    var old: [SealingKey] = []
    for (index, element) in (reader.elements("old_keys") ?? []).enumerated() {
      guard let text = element.value.string, element.value.holdsSubstitution else {
        reader.report("old_keys", Self.writtenOut("old_keys"))
        continue
      }
      self.secrets.add(text)
      if let key = self.sealingKey(reader, "old_keys", text, number: index) { old.append(key) }
    }
    return (present, old)
  }

  /// What a letter keeps of the event.
  func payload(_ reader: JSONReader, key: SealingKey?) -> DeadLetterFile.Payload? {
    let choice: DeadLetterConfiguration.PayloadChoice? = reader.choice("payload")
    switch choice {
    case .full: return .full
    case .none?: return DeadLetterFile.Payload.none
    case .sealed:
      if let key { return .sealed(key) }
      // One that is wrong has been reported.
      if !reader.has("key"), !reader.has("key_file") {
        reader.report(
          "payload", "sealed needs a key: set \"key\": \"${NAME}\" or \"key_file\"")
      }
      return nil
    case nil: return nil
    }
  }

  /// The text of `key` or `key_file`, without line end; nil when there is none, or it is reported.
  func keyText(_ reader: JSONReader) -> (member: String, text: String)? {
    let value = reader.any("key")
    let text = self.text(reader, "key")
    let file = self.path(reader, "key_file")
    if value != nil, reader.has("key_file") {
      reader.report("key_file", "either key_file or key, not both")
      return nil
    }
    if let file {
      self.secretFiles.insert(file)
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
  func withKey(_ stage: JSONValue, _ path: String, _ mistakes: JSONMistakes) -> JSONValue {
    guard let members = stage.members, members.contains(where: { $0.name.hasPrefix("key") }),
      let found = self.keyText(JSONReader(stage, path: path, mistakes: mistakes))
    else { return stage }
    var stage = stage
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

  /// Dead letters hold events as they came, before any stage.
  func checkMasks(
    _ reader: JSONReader, stages: [StageConfiguration], _ deadLetter: DeadLetterConfiguration?
  ) {
    guard stages.contains(where: { $0.value["type"]?.string == Mask.type }),
      deadLetter?.payload == .full,
      // Else its key is what is wrong, which has been reported.
      reader.any("dead_letter")?["payload"]?.string != "sealed"
    else { return }
    reader.report(
      "dead_letter",
      "dead letters would hold what the stage 'mask' hides; set \"payload\" in it to \"sealed\" "
        + "(encrypted, with \"key\" or \"key_file\") or to \"none\"")
  }

  private static func writtenOut(_ member: String) -> String {
    "a key is not written into the pipeline file, which others read; put it into an environment "
      + "variable or a file, and write \(member == "key" ? "" : "[")\"${NAME}\""
      + "\(member == "key" ? " or use key_file" : "] or [\"${file:/path}\"]")"
  }

  private func sealingKey(
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
