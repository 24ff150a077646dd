internal import Bytes
package import Cryptography
package import JSON
internal import Pipeline

/// A payload in a line of dead letters that only the holders of a key can read.
package struct SealedPayload: Sendable, Equatable {
  /// Nonce, ciphertext and tag.
  package var bytes: [UInt8]
  /// The ID of the key that opens it.
  package var keyID: String

  /// The size of the payload.
  package var byteCount: Int { self.bytes.count - SealingKey.overhead }

  init(_ letter: DeadLetter, key: SealingKey) {
    self.bytes = key.seal(letter.payload, context: Self.context(of: letter))
    self.keyID = key.id
  }

  /// - Returns: nil for a payload that the other initializer cannot produce.
  init?(bytes: [UInt8], keyID: String) {
    guard bytes.count >= SealingKey.overhead, !keyID.isEmpty else { return nil }
    self.bytes = bytes
    self.keyID = keyID
  }

  func open(_ letter: DeadLetter, key: SealingKey) -> [UInt8]? {
    key.open(self.bytes, context: Self.context(of: letter))
  }

  /// The additional authenticated data: the letter's identity, so that payloads cannot be exchanged
  /// between lines. Every part is preceded by its length.
  private static func context(of letter: DeadLetter) -> [UInt8] {
    let parts = [
      letter.topic, String(letter.epoch), String(letter.ordinal), letter.schemaID,
      letter.replayID.hex, letter.eventID,
    ]
    return Array("pubsub-etl dead letter\0".utf8)
      + parts.flatMap { Array("\($0.utf8.count):".utf8) + Array($0.utf8) }
  }
}

/// A sealed payload cannot be opened.
package struct SealedPayloadError: Error, Sendable, CustomStringConvertible {
  /// Names the key by its ID, and says what to do.
  package let description: String
}

extension StoredDeadLetter {
  /// The letter with its payload in the clear; an unsealed letter is returned unchanged.
  ///
  /// - Parameter keys: the current key and older ones.
  package func opened(with keys: [SealingKey]) throws(SealedPayloadError) -> StoredDeadLetter {
    guard let sealed = self.sealed else { return self }
    guard let key = keys.first(where: { $0.id == sealed.keyID }) else {
      let known = keys.map(\.id).joined(separator: ", ")
      throw SealedPayloadError(
        description: "its payload is sealed with key \(sealed.keyID), "
          + (keys.isEmpty
            ? "and the pipeline file has no key; set dead_letter.key or dead_letter.key_file"
            : "and the pipeline file has \(known); add that key to dead_letter.old_keys"))
    }
    guard let payload = sealed.open(self.letter, key: key) else {
      throw SealedPayloadError(
        description: "its sealed payload was changed, or belongs to another letter (key "
          + "\(key.id)); put back a copy of the file")
    }
    var opened = self
    opened.sealed = nil
    opened.letter.payload = payload
    opened.json = self.json(withPayload: payload)
    return opened
  }

  /// The line's members for another payload, sealed with the same key if it was sealed.
  ///
  /// - Parameters:
  ///   - payload: nil removes it.
  ///   - keys: those with which the letter was opened.
  package func members(ofPayload payload: [UInt8]?, keys: [SealingKey]) -> [JSONMember] {
    guard let payload else { return [JSONMember("payload", nil)] }
    guard let key = keys.first(where: { $0.id == self.sealed?.keyID }) else {
      return [JSONMember("payload", .string(payload.base64))]
    }
    var letter = self.letter
    letter.payload = payload
    let sealed = SealedPayload(letter, key: key)
    return [
      JSONMember("sealed", .string(sealed.bytes.base64)),
      JSONMember("key_id", .string(sealed.keyID)),
    ]
  }

  /// The line in its unsealed form.
  private func json(withPayload payload: [UInt8]) -> JSONValue {
    let members = (self.json.members ?? []).compactMap { member -> JSONMember? in
      switch member.name {
      case "sealed": JSONMember("payload", .string(payload.base64))
      case "key_id": nil
      default: member
      }
    }
    return JSONValue(.object(members))
  }
}
