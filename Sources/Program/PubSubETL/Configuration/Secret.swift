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
  static let keys = Self.keys(of: [.secret, .addressWithPassword]).union(["password"])

  /// Keys whose values are URLs, which may contain a password whether or not it is accepted there.
  static let urlKeys = Self.keys(of: [.addressWithPassword, .address])

  private static func keys(of kinds: Set<KeyDeclaration.Secrecy>) -> Set<String> {
    func names(_ keys: [KeyDeclaration]) -> [String] {
      keys.flatMap { key in
        (kinds.contains(key.secrecy) ? [key.name] : []) + key.objects.flatMap(names)
      }
    }
    return Set(names(PipelineConfiguration.declarations))
  }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  var description: String { "<redacted>" }
  var debugDescription: String { "<redacted>" }
  var customMirror: Mirror { Mirror(self, children: []) }
}
