/// A text that must not appear in logs, messages or reports: every way of printing it gives
/// `<redacted>`.
struct Secret: Sendable, Equatable {
  /// The text itself, for the one request that needs it.
  let value: String

  init(_ value: String) { self.value = value }

  /// Keys of the pipeline file whose values are secrets. They come from the environment or a
  /// file, never from the command line, which other users of the machine can read. `password` is
  /// no key, but the text after the word is a secret.
  ///
  /// Written down, and held to the declarations of keys by a test, because each command needs them and a walk
  /// through all declarations takes milliseconds.
  static let keys: Set = [
    "client_secret", "access_token", "refresh_token", "private_key", "password", "url", "key",
    "old_keys", "secret",
  ]

  /// Keys whose values are URLs, which may contain a password whether or not it is accepted there.
  static let urlKeys: Set = ["url", "proxy", "endpoint", "login_url", "instance_url"]
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  var description: String { "<redacted>" }
  var debugDescription: String { "<redacted>" }
  var customMirror: Mirror { Mirror(self, children: []) }
}
