/// What can be the ID of a schema.
@usableFromInline package enum SchemaID {
  /// The service's have 22 characters.
  @inlinable package static var maxByteCount: Int { 256 }

  /// Visible ASCII: the ID goes into requests, logs and reports.
  @inlinable package static func isValid(_ bytes: some Collection<UInt8>) -> Bool {
    (1...Self.maxByteCount).contains(bytes.count)
      && bytes.allSatisfy { (0x21...0x7E).contains($0) }
  }
}
