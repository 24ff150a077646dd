/// The system's OpenSSL refuses a hash function.
public struct DigestError: Error, Sendable, CustomStringConvertible {
  public let message: String

  public var description: String { self.message }
}
