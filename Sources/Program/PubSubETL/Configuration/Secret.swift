import JSON

/// A text that must not appear in logs, messages or reports: every way of printing it gives
/// `<redacted>`.
struct Secret: Sendable, Equatable {
  /// The text itself, for the one request that needs it.
  let value: String

  init(_ value: String) { self.value = value }

  /// Keys of the pipeline file whose values are secrets. They come from the environment or a
  /// file, never from the command line, which other users of the machine can read. `password` is
  /// no key, but the text after the word is a secret.
  static let keys = Self.found.secrets.union(["password"])

  /// Keys whose values are URLs, which may contain a password whether or not it is accepted there.
  static var urlKeys: Set<String> { Self.found.urls }

  /// Each command needs them, and to walk through all declarations takes milliseconds.
  private static let found: (secrets: Set<String>, urls: Set<String>) = {
    var found: (secrets: Set<String>, urls: Set<String>) = ([], [])
    func note(_ keys: [KeyDeclaration]) {
      for key in keys {
        if [.secret, .addressWithPassword].contains(key.secrecy) { found.secrets.insert(key.name) }
        if [.address, .addressWithPassword].contains(key.secrecy) { found.urls.insert(key.name) }
        key.objects.forEach(note)
      }
    }
    note(PipelineConfiguration.declarations)
    return found
  }()
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  var description: String { "<redacted>" }
  var debugDescription: String { "<redacted>" }
  var customMirror: Mirror { Mirror(self, children: []) }
}
