package import DurableFiles
package import HTTPClient

/// The credentials of a bucket: fetched once, and renewed before they expire.
package actor CredentialProvider {
  /// Temporary credentials are renewed this long before they expire, so that a call that waits in a
  /// queue of the store still has valid ones.
  private static let margin: Int64 = 300_000
  /// Between two attempts to renew credentials that are still valid.
  private static let pause: Int64 = 30_000

  private let source: CredentialSource
  private let reader: CredentialReader
  private var cached: StoreCredentials?
  /// Wall time before which valid credentials are not renewed again, in milliseconds.
  private var nextRenewal: Int64 = 0

  /// - Parameters:
  ///   - region: of the bucket; that of the token service, unless it has an endpoint of its own.
  ///   - environment: the value of a variable.
  package init(
    _ source: CredentialSource, region: String, http: HTTPClient,
    environment: @escaping @Sendable (String) -> String?,
    fileSystem: any FileSystem = SystemFileSystem()
  ) {
    self.source = source
    self.reader = CredentialReader(
      region: region, http: http, environment: environment, fileSystem: fileSystem)
  }

  /// Throws `ObjectStoreError`, or `CancellationError` when the task is cancelled. Does not retry: the
  /// caller backs off.
  package func credentials() async throws -> StoreCredentials {
    let now = self.reader.wallTime
    if let cached = self.cached {
      guard let expiresAt = cached.expiresAt else { return cached }
      if now < expiresAt - Self.margin { return cached }
      if now < expiresAt, now < self.nextRenewal { return cached }
    }
    self.nextRenewal = now + Self.pause
    do {
      let new = try await self.reader.read(self.source)
      self.cached = new
      return new
    } catch let error as ObjectStoreError {
      // The old ones are good for a while.
      if let cached = self.cached, let expiresAt = cached.expiresAt, now < expiresAt {
        return cached
      }
      throw error
    }
  }

  /// The store has refused credentials. However many callers say so, they are fetched again once.
  ///
  /// - Returns: whether others can be fetched.
  package func refused(_ credentials: StoreCredentials) -> Bool {
    if case .keys = self.source { return false }
    if self.cached == credentials { self.cached = nil }
    return true
  }
}

extension CredentialProvider: CustomReflectable {
  package nonisolated var customMirror: Mirror { Mirror(self, children: []) }
}
