package import PostgresClient

/// What the encoding of a database means for Salesforce's texts, which are Unicode.
package enum DatabaseEncoding {
  /// - Returns: nil for UTF8.
  package static func concern(_ connection: PostgresConnection) -> String? {
    guard let encoding = connection.serverEncoding, encoding != "UTF8" else { return nil }
    let effect =
      encoding == "SQL_ASCII"
      ? "checks no text and may not recognize its characters"
      : "cannot store every character of Salesforce's texts; events with others become dead letters"
    return "the database has the encoding \(encoding), which \(effect). Create one with CREATE "
      + "DATABASE … ENCODING 'UTF8' TEMPLATE template0"
  }

  /// - Parameter concern: of a database in which the sink has no tables yet.
  package static func refusal(_ concern: String) -> PostgresError {
    PostgresError(.configuration, "postgres: \(concern), and use it in url; nothing was written")
  }
}
