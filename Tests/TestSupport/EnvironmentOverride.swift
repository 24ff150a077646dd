import Glibc

/// Variables of this process's environment with other values, until they are restored. For tests that run one
/// at a time.
package struct EnvironmentOverride {
  private let saved: [String: String?]

  /// - Parameter values: nil to unset a variable.
  package init(_ values: [String: String?]) {
    self.saved = Dictionary(
      uniqueKeysWithValues: values.keys.map { ($0, getenv($0).map { String(cString: $0) }) })
    Self.set(values)
  }

  package func restore() { Self.set(self.saved) }

  private static func set(_ values: [String: String?]) {
    for (name, value) in values {
      if let value { setenv(name, value, 1) } else { unsetenv(name) }
    }
  }
}
