internal import CPQ

/// How to reach a database, and how long to wait for it.
package struct PostgresConnectionConfiguration: Sendable, Equatable {
  /// A URI or a `key=value` string as libpq reads it; empty: the `PG…` variables and `.pgpass`
  /// alone. Holds secrets: never printed.
  package var url: String
  /// Per host, unless the URL or `PGCONNECT_TIMEOUT` says otherwise.
  package var connectTimeout: Duration
  /// Of each statement, by the server; zero: none.
  package var statementTimeout: Duration
  /// Of each lock, by the server; zero: none.
  package var lockTimeout: Duration
  /// How long the server may be silent beyond the statement timeout before the connection is given
  /// up; never without a statement timeout, since nothing tells slow from stopped then.
  package var silenceTimeout: Duration

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

  package static let urlForm =
    "it is like postgresql://user@host:5432/database?sslmode=verify-full or key=value pairs, and "
    + "special characters in a URL are written as %XX"

  /// False when libpq does not understand the URL.
  package static func isReadable(url: String) -> Bool {
    // The message, which is left alone here, may quote a part of a password.
    guard let options = PQconninfoParse(url, nil) else { return false }
    PQconninfoFree(options)
    return true
  }
}
