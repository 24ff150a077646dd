import FoundationEssentials
import TestSupport
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
    "libpq's own failures end at once, with the setting",
    arguments: [
      ("auth-0", "service=c4nary-none", "PGSERVICEFILE"), ("auth-0", "sslmode=require", "sslmode"),
      ("auth-0", "sslmode=c4nary", "sslmode has a value"),
      ("auth-0", "c4nary=1", "connection string"),
      ("tls", "sslmode=verify-full sslrootcert=/nowhere/root.crt", "sslrootcert"),
      ("tls", "sslmode=require sslcert=/", "sslcert"),
      ("auth-9", "gssencmode=disable", "kinit"),
      (
        "auth-0", "ssl_min_protocol_version=TLSv1.3 ssl_max_protocol_version=TLSv1.2",
        "ssl_max_protocol_version"
      ), ("auth-99", "", "pg_hba.conf"),
      ("auth-0", "channel_binding=require", "channel_binding"),
    ])
  func real(kind: String, options: String, setting: String) throws {
    let server = try PythonServer("hostile_postgres.py", [kind])
    let error = postgresError {
      _ = try PostgresConnection(
        PostgresConnectionConfiguration(
          url: "host=127.0.0.1 port=\(server.port) user=x dbname=x \(options)"))
    }
    #expect(error?.disposition == .configuration, "\(error?.message ?? "connected")")
    #expect(error?.message.contains(setting) == true, "\(error?.message ?? "")")
  }

  @Test("A password file that libpq does not read is named when a password is missing")
  func passwordFile() throws {
    let server = try PythonServer("hostile_postgres.py", ["auth-3"])
    let folder = try TemporaryDirectory()
    let path = folder.path + "/pgpass"
    try Data("*:*:*:*:c4nary".utf8).write(to: URL(filePath: path))
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
    let error = postgresError {
      _ = try PostgresConnection(
        PostgresConnectionConfiguration(
          url: "host=127.0.0.1 port=\(server.port) user=x passfile=\(path)"))
    }
    #expect(error?.disposition == .refused)
    #expect(error?.message.contains("chmod 600 \(path)") == true, "\(error?.message ?? "")")
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
