internal import CPQ
package import Clocks

/// How to reach a database, and how long to wait for it.
package struct PostgresConnectionConfiguration: Sendable, Equatable {
  /// A URI or a `key=value` string as libpq reads it; empty: the `PG…` variables and `.pgpass`
  /// alone. Holds secrets: never printed.
  package var url: String
  /// Per host, unless the URL or `PGCONNECT_TIMEOUT` says otherwise.
  package var connectTimeout: Duration
  /// The server's time limit for a statement; zero: none.
  package var statementTimeout: Duration
  /// The server's time limit for waiting for a lock; zero: none.
  package var lockTimeout: Duration
  /// After how long without an answer another connection is tried: a server that is only slow
  /// answers that. Beyond the statement timeout the server may be silent for as long.
  package var silenceTimeout: Duration
  /// How long a server that takes new connections may leave statements on them unanswered before it
  /// is treated as stopped. A pooler whose connections are all in use does that for a while. Nil:
  /// until the time limit of the statement.
  package var stallTimeout: Duration?
  /// An answer with more bytes ends the connection.
  package var maxAnswerBytes = 256 << 20
  package var clock = ProcessClock()

  package init(
    url: String, connectTimeout: Duration = .seconds(15),
    statementTimeout: Duration = .seconds(300), lockTimeout: Duration = .seconds(15),
    silenceTimeout: Duration = .seconds(30)
  ) {
    self.url = url
    self.connectTimeout = connectTimeout
    self.statementTimeout = statementTimeout
    self.lockTimeout = lockTimeout
    self.silenceTimeout = silenceTimeout
  }

  /// For commands that somebody waits for: a database that does not answer is noticed within seconds.
  package var prompt: Self {
    var prompt = self
    prompt.connectTimeout = min(self.connectTimeout, .seconds(5))
    prompt.silenceTimeout = min(self.silenceTimeout, .seconds(5))
    return prompt
  }

  /// For commands that are over in seconds unless they read many rows.
  package var brief: Self {
    var brief = self.prompt
    brief.stallTimeout = .zero
    return brief
  }

  package static let urlForm =
    "it is like postgresql://user@host:5432/database?sslmode=verify-full or key=value pairs, and "
    + "special characters in a URL are written as %XX"

  /// Why a URL cannot be used, and what to write; nil when it can. Quotes nothing of it.
  ///
  /// More than whether libpq understands it: a password with a character that ends it is taken apart
  /// at the wrong place, and its rest becomes a host's or database's name, which messages repeat.
  package static func mistake(in url: String) -> String? {
    guard let options = Self.options(of: url) else {
      return "not a valid libpq connection string; \(Self.urlForm)"
    }
    if let scheme = url.firstRange(of: "://") {
      let rest = url[scheme.upperBound...].prefix { $0 != "?" }
      let authority = rest.prefix { $0 != "/" }
      if rest.count(where: { $0 == "@" }) > 1 {
        return "the user or password contains '@'; write it as %40 in a URL"
      }
      if !authority.contains("@"), rest.contains("@") {
        return "the user or password contains '/'; write it as %2F in a URL"
      }
      // The rest of a password with '/' and '?'. '@' begins the name of an abstract socket.
      for host in (options["host"] ?? "").split(separator: ",") where host.dropFirst().contains("@")
      {
        return "the host contains '@'; write special characters of a password as %XX in a URL"
      }
    }
    for port in (options["port"] ?? "").split(separator: ",") {
      guard let number = Int(port), (1...65535).contains(number) else {
        return "the port is not a number from 1 to 65535; \(Self.urlForm)"
      }
    }
    return nil
  }

  /// Passwords as libpq reads them; none when it does not understand the URL.
  package static func passwords(in url: String) -> [String] {
    let options = Self.options(of: url) ?? [:]
    return ["password", "sslpassword"].compactMap { options[$0] }
  }

  /// The settings by keyword. The message of a failure may quote a part of a password and is not
  /// used.
  private static func options(of url: String) -> [String: String]? {
    guard let list = PQconninfoParse(url, nil) else { return nil }
    defer { PQconninfoFree(list) }
    var options: [String: String] = [:]
    var option = list
    while let keyword = option.pointee.keyword {
      if let value = option.pointee.val {
        options[String(cString: keyword)] = String(cString: value)
      }
      option += 1
    }
    return options
  }
}
