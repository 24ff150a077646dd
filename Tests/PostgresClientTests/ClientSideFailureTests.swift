import Testing

@testable import PostgresClient

@Suite("Failures of connections on our side") struct ClientSideFailureTests {
  private static let at = "connection to server at \"db\" (10.0.0.1), port 5432 failed: "

  @Test(
    "A failure that no later attempt changes names the setting to change",
    arguments: [
      ("local user with ID 4711 does not exist", "PGUSER"),
      ("definition of service \"crm\" not found", "PGSERVICEFILE"),
      ("service file \"/etc/x\" not found", "PGSERVICE"),
      (
        at
          + "root certificate file \"/root/.postgresql/root.crt\" does not exist; Either provide the "
          + "file or change sslmode to disable server certificate verification.", "sslrootcert"
      ),
      (at + "could not get home directory to locate root certificate file", "sslrootcert"),
      (at + "SSL error: certificate verify failed", "sslrootcert"),
      (
        at + "server certificate for \"a\" (and 2 other names) does not match host name \"b\"",
        "host in"
      ),
      (
        at
          + "could not open certificate file \"/root/.postgresql/postgresql.crt\": Permission denied",
        "HOME"
      ),
      (at + "private key file \"k\" has group or world access; file must have …", "sslkey"),
      (at + "could not load private key file \"k\": bad decrypt", "sslkey"),
      (at + "SSL error: tlsv13 alert certificate required", "sslcert"),
      (at + "server does not support SSL, but SSL was required", "sslmode"),
      (at + "GSSAPI encryption required but was impossible", "gssencmode"),
      (at + "authentication method 13 not supported", "pg_hba.conf"),
      (
        at + "channel binding is required, but server did not offer an authentication method",
        "channel_binding"
      ),
      (at + "received invalid response to SSL negotiation: H", "another program"),
      ("connection to server on socket \"/x/.s.PGSQL.5432\" failed: Permission denied", "socket"),
      ("Unix-domain socket path \"/x\" is too long (maximum 107 bytes)", "host"),
    ])
  func final(message: String, setting: String) {
    #expect(ClientSideFailure.remedy(for: message)?.contains(setting) == true)
  }

  @Test(
    "A failure that may be over in a moment is retried, even if another host's is not",
    arguments: [
      at + "Connection refused", at + "SSL SYSCALL error: EOF detected", at + "timeout expired",
      "could not translate host name \"db\" to address: Temporary failure in name resolution",
      at + "server closed the connection unexpectedly", at + "session is read-only",
      at + "SSL error: certificate verify failed; " + at + "Connection refused", "",
    ])
  func transient(message: String) {
    #expect(ClientSideFailure.remedy(for: message) == nil)
  }
}
