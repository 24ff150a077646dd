internal import CPQ
internal import Glibc

/// Why a connection failed, and what to change.
extension PostgresConnection {
  static func refusal(_ connection: OpaquePointer) -> PostgresError {
    let message = Self.message(of: connection)
    if let sqlState = Self.sqlState(in: message) {
      // A pooler refuses what it does not know with a protocol violation.
      let usual =
        Self.isTemporaryAtLogin(sqlState)
        ? .retry : PostgresError.disposition(sqlState: sqlState)
      // Before the first statement nothing is about rows: the server refuses a setting.
      let isSetting = [.rejectedRow, .bug, .configuration].contains(usual)
      return PostgresError(
        isSetting ? .configuration : usual,
        "postgres: cannot connect: \(message)"
          + (isSetting ? "; check options in url, and the variable PGOPTIONS" : ""),
        sqlState: sqlState)
    }
    if PQconnectionNeedsPassword(connection) == 1 {
      return PostgresError(
        .refused,
        "postgres: \(Self.place(connection)) requires a password; put it into the URL, "
          + "PGPASSWORD or .pgpass\(Self.passwordFileFault(connection))",
        sqlState: SQLState.invalidPassword)
    }
    if message.hasPrefix("invalid SSL protocol version range") {
      return PostgresError(
        .configuration,
        "postgres: ssl_min_protocol_version in url is above ssl_max_protocol_version; change one")
    }
    // These come from reading the options; what they quote may be a part of a password.
    for start in Self.optionFailures where message.hasPrefix(start) {
      let option =
        Self.keywords.first { message.contains("invalid \($0) value") }
        ?? Self.keywords.first { message.contains("for connection option \"\($0)\"") }
      return PostgresError(
        .configuration,
        "postgres: url, or a PG… variable, is not a valid libpq connection string"
          + (option.map { " (\($0) has a value that libpq does not know)" } ?? "") + "; "
          + PostgresConnectionConfiguration.urlForm)
    }
    guard let remedy = ClientSideFailure.remedy(for: message) else {
      return .connectionLost("cannot connect: \(message)")
    }
    return PostgresError(.configuration, "postgres: cannot connect: \(message); \(remedy)")
  }

  /// Conditions that refuse a login for a while, although they end a statement for good: the database
  /// accepts no connections (ALLOW_CONNECTIONS false, as during maintenance), or the server has no
  /// memory or process left for one more.
  private static func isTemporaryAtLogin(_ sqlState: String) -> Bool {
    sqlState == SQLState.objectNotInPrerequisiteState
      || sqlState.hasPrefix("53") && sqlState != SQLState.diskFull
  }

  private static let optionFailures = [
    "invalid ", "missing ", "unterminated ", "could not match ", "unexpected ",
    "extra key/value separator", "end of string reached", "IPv6 host address", "forbidden value",
  ]

  /// The keywords that libpq knows.
  private static var keywords: [String] {
    guard let list = PQconndefaults() else { return [] }
    defer { PQconninfoFree(list) }
    var keywords: [String] = []
    var option = list
    while let keyword = option.pointee.keyword {
      keywords.append(String(cString: keyword))
      option += 1
    }
    return keywords
  }

  /// libpq says so on standard error only, and continues without the file.
  private static func passwordFileFault(_ connection: OpaquePointer) -> String {
    guard let options = PQconninfo(connection) else { return "" }
    defer { PQconninfoFree(options) }
    var option = options
    while let keyword = option.pointee.keyword {
      defer { option += 1 }
      guard String(cString: keyword) == "passfile", let value = option.pointee.val else { continue }
      let path = String(cString: value)
      var status = stat()
      guard stat(path, &status) == 0 else { return "" }
      if status.st_mode & S_IFMT != S_IFREG { return "; \(path) is not a plain file" }
      if status.st_mode & 0o077 != 0 {
        return "; libpq does not read \(path), because others may read it: run chmod 600 \(path)"
      }
      if access(path, R_OK) != 0 { return "; this user may not read \(path)" }
    }
    return ""
  }

  /// The last `FATAL:  28P01: …` of a message; the first word is in the server's language.
  private static func sqlState(in message: String) -> String? {
    var found: String?
    let words = message.split(separator: " ")
    for (word, next) in zip(words, words.dropFirst()) where word.hasSuffix(":") {
      let code = next.dropLast()
      if next.hasSuffix(":"), code.utf8.count == 5,
        code.utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) })
      {
        found = String(code)
      }
    }
    return found
  }
}

/// Failures on this side, or of an agreement between both sides, that no later attempt changes. They
/// have no SQLSTATE; the words are those of libpq 9.6 to 18 (`fe-connect.c`, `fe-secure-openssl.c`,
/// `fe-auth.c`), which it does not translate for a program without `setlocale`.
enum ClientSideFailure {
  /// What to change; nil when the failure may be over in a moment.
  ///
  /// - Parameter message: what libpq says, of each host that it tried.
  static func remedy(for message: String) -> String? {
    let attempts = message.split(separator: "connection to server ").map(String.init)
    let remedies = attempts.map { attempt in
      Self.table.first { $0.words.contains(where: attempt.contains) }?.remedy
    }
    // Another of several hosts may answer next time.
    guard !remedies.contains(nil) else { return nil }
    return remedies.first ?? nil
  }

  private static let table: [(words: [String], remedy: String)] = [
    (
      ["local user with ID", "could not look up local user", "no user name supplied"],
      "set the user in url, or PGUSER, because the ID that the program runs under has no name on "
        + "this machine"
    ),
    (
      [
        "root certificate file", "locate root certificate", "system root certificate",
        "weak sslmode",
      ],
      "set sslrootcert in url, or PGSSLROOTCERT, to the file with the CA's certificate (without it "
        + "libpq looks in .postgresql below HOME), or choose another sslmode"
    ),
    (
      ["certificate verify failed", "self-signed certificate", "self signed certificate"],
      "set sslrootcert in url, or PGSSLROOTCERT, to the certificate of the CA that issued the "
        + "server's; if that is right, the server's certificate has expired or is not valid yet"
    ),
    (
      [
        "does not match host name", "host name must be specified for a verified",
        "host name from server certificate", "server certificate's name", "certificate's name",
      ],
      "use a host in url for which the server's certificate was issued (hostaddr may give its "
        + "address), or sslmode=verify-ca to accept any name"
    ),
    (
      ["certificate revocation", "CRL"], "set sslcrl or sslcrldir in url to a readable list"
    ),
    (
      [
        "certificate file", "private key file", "private SSL key", "SSL engine", "private key \"",
        "alert unknown ca", "alert certificate", "alert bad certificate", "certificate required",
        "certificate unknown", "sslv3 alert",
      ],
      "check sslcert and sslkey in url: both files have to be readable for this user, the key for "
        + "nobody else (chmod 600), and the server has to trust the certificate. Without these "
        + "settings libpq looks in .postgresql below HOME, which has to be this user's"
    ),
    (
      ["server does not support SSL", "SSL support is not compiled in"],
      "turn on ssl at the server, or set an sslmode in url that allows connections without it"
    ),
    (
      [
        "SSL error: unsupported protocol", "no protocols available", "wrong version number",
        "alert protocol version", "handshake failure", "key too small", "md too weak",
      ],
      "the two sides share no TLS version or cipher; check ssl_min_protocol_version and "
        + "ssl_max_protocol_version in url, and the server's settings"
    ),
    (
      [
        "GSSAPI encryption", "No Kerberos credentials", "No credentials", "Ticket expired",
        "SPNEGO cannot find mechanisms",
      ],
      "set gssencmode in url to prefer or disable, or get a Kerberos ticket (kinit)"
    ),
    (
      ["definition of service", "service file"],
      "check service in url, or PGSERVICE, and the file that PGSERVICEFILE names (or "
        + ".pg_service.conf below HOME)"
    ),
    (
      [
        "authentication method", "authentication not supported", "SASL authentication mechanisms",
        "channel binding", "authentication over a non-SSL connection", "authentication is required",
      ],
      "the server's pg_hba.conf requires an authentication method that this libpq lacks, or that "
        + "channel_binding or require_auth in url forbids; change one of them"
    ),
    (
      [
        "invalid response to SSL negotiation", "invalid response to GSSAPI negotiation",
        "expected authentication request from server", "unencrypted data after", "SCRAM message",
        "invalid SCRAM", "incorrect server signature",
      ],
      "check that host and port in url lead to a PostgreSQL server, and not to another program"
    ),
    (
      ["failed: Permission denied", "failed: Operation not permitted"],
      "this user may not use that socket; check host in url, and the permissions of its folder"
    ),
    (
      ["Unix-domain socket path", "could not parse network address"],
      "check host and hostaddr in url"
    ),
  ]
}
