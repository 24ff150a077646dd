/// A private key that cannot sign. Its text never holds a part of the key.
package struct SigningKeyError: Error, Sendable, CustomStringConvertible {
  package struct Code: Hashable, Sendable {
    private enum Value {
      case empty, tooLarge, notPEM, encrypted, notPrivate, otherFormat, otherAlgorithm, size
      case unreadable
    }
    private var value: Value
    private init(_ value: Value) { self.value = value }
    /// Nothing but white space.
    package static var empty: Self { Self(.empty) }
    /// More bytes than a key in PEM form can have.
    package static var tooLarge: Self { Self(.tooLarge) }
    /// No line `-----BEGIN …-----`.
    package static var notPEM: Self { Self(.notPEM) }
    /// Protected by a passphrase, which a program without a user cannot ask for.
    package static var encrypted: Self { Self(.encrypted) }
    /// A certificate, a request for one, or a public key.
    package static var notPrivate: Self { Self(.notPrivate) }
    /// A private key in a format other than PKCS#1 and PKCS#8.
    package static var otherFormat: Self { Self(.otherFormat) }
    /// A private key for another algorithm than RSA.
    package static var otherAlgorithm: Self { Self(.otherAlgorithm) }
    /// An RSA key with too few or too many bits.
    package static var size: Self { Self(.size) }
    /// PEM of the right kind whose content OpenSSL cannot read.
    package static var unreadable: Self { Self(.unreadable) }
  }

  package var code: Code
  /// What is wrong, to follow the name of the key, and what to do.
  package var message: String
  package var description: String { self.message }

  init(_ code: Code, _ message: String) {
    (self.code, self.message) = (code, message)
  }
}
