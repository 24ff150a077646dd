import Cryptography
import FileSink
import JSON
import Pipeline

/// Where events that cannot be decoded or written go (`dead_letter`).
struct DeadLetterConfiguration: KeyedObject, Sendable, Equatable {
  /// Absolute; `dead` in the checkpoint's directory unless said otherwise.
  var directory = ""
  /// Dead letters a run may write and still succeed; nil for any number.
  var max: Int? = 0
  /// Share of a run's events, 0…1, that may become dead letters; nil for any share.
  var maxRatio: Double?
  var payload = DeadLetterFile.Payload.full
  /// What opens payloads that are sealed: the present key, and those before it.
  var keys: [SealingKey] = []
  private var choice = PayloadChoice.full

  var isSealed: Bool {
    if case .sealed = self.payload { true } else { false }
  }

  /// What `payload` may be in the file.
  enum PayloadChoice: String, CaseIterable, Sendable {
    case full, sealed, none
  }

  static var keys: [Key<Self>] {
    [
      .key(
        "directory", \.directory, .path,
        "Directory for dead letter files; default: the folder dead in the checkpoint's directory.",
        example: "../dead"),
      .key(
        "max", \.max, .integer(in: 0 ... .max),
        "Number of dead letters that a run may write and still succeed; any number if only "
          + "max_ratio is set. A run stores all letters of a commit before it ends with 65, so there "
          + "may be more.", example: 100),
      .key(
        "max_ratio", \.maxRatio, .fraction,
        "Share of a run's events, from 0 to 1, that may become dead letters; it counts from "
          + "\(RunnerConfiguration.ratioFromEvents) events on.",
        example: JSONValue(.number("0.01"))),
      .key(
        "payload", \.choice, .choice(),
        "full: a dead letter keeps the event's payload, and can be retried; sealed: the same, "
          + "encrypted with key; none: position and reason only. With a mask stage, sealed or none."
      ),
      .noted(
        "key", .variable,
        "Variable with the key that seals payloads: 32 bytes as 64 hexadecimal digits or base64.",
        example: "${DEAD_LETTER_KEY}", secrecy: .secret),
      .noted(
        "key_file", .path, "File with the key, instead of key.",
        example: "/run/secrets/dead-letter.key"),
      .key(
        "old_keys", \.keys, .oldKeys, "Earlier keys, for letters that were sealed with them.",
        example: ["${OLD_DEAD_LETTER_KEY}"], secrecy: .secret),
    ]
  }

  mutating func check(_ reader: JSONReader) {
    // Without max, a ratio alone allows any number of letters.
    if self.maxRatio != nil, !reader.has("max") { self.max = nil }
    let key = reader.configuration.sealingKey(reader)
    self.keys = [key].compactMap { $0 } + self.keys
    switch self.choice {
    case .full: self.payload = .full
    case .none: self.payload = .none
    case .sealed:
      if let key {
        self.payload = .sealed(key)
      } else if !reader.has("key"), !reader.has("key_file") {
        // One that is wrong has been reported.
        reader.report("payload", "sealed needs a key: set \"key\": \"${NAME}\" or \"key_file\"")
      }
    }
  }
}
