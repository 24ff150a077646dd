internal import CPQ
internal import Glibc

extension PostgresConnectionConfiguration {
  /// The host that the connection goes to over a network without anybody having said how it is
  /// protected: no `sslmode` in the URL, the environment or a service file. Nil when there is none;
  /// several hosts are one text, as they are given.
  package var unprotectedHost: String? {
    guard let given = PQconninfoParse(self.url, nil) else { return nil }
    defer { PQconninfoFree(given) }
    guard let defaults = PQconndefaults() else { return nil }
    defer { PQconninfoFree(defaults) }
    let (own, others) = (Self.values(given), Self.values(defaults))
    // libpq's own default is reported like one from the environment.
    guard own["sslmode"] == nil, getenv("PGSSLMODE") == nil,
      others["sslmode"].map({ $0 == "prefer" }) ?? true
    else { return nil }
    let address = own["hostaddr"] ?? others["hostaddr"]
    guard let hosts = own["host"] ?? address ?? others["host"] else { return nil }
    let remote = (address ?? hosts).split(separator: ",").contains { !Self.isLocal($0) }
    return remote ? hosts : nil
  }

  /// A socket of the file system, an abstract one, or loopback.
  private static func isLocal(_ host: Substring) -> Bool {
    host.hasPrefix("/") || host.hasPrefix("@") || host.hasPrefix("127.") || host == "::1"
      || host.lowercased() == "localhost"
  }

  private static func values(
    _ options: UnsafeMutablePointer<PQconninfoOption>
  ) -> [String: String] {
    var values: [String: String] = [:]
    var option = options
    while let keyword = option.pointee.keyword {
      if let value = option.pointee.val, value.pointee != 0 {
        values[String(cString: keyword)] = String(cString: value)
      }
      option += 1
    }
    return values
  }
}
