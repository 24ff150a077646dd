import Glibc
import PostgresClient
import TestSupport
import Testing

@Suite("PostgreSQL connections", .enabled(if: PostgresCluster.isAvailable))
struct PostgresConnectionTests {
  @Test("Several statements run in one call, and the first error ends them")
  func simpleProtocol() async throws {
    let connection = try await TestDatabase().connect()
    try connection.execute("CREATE TABLE t (a int); INSERT INTO t VALUES (1), (2)")
    #expect(try connection.column("SELECT a FROM t ORDER BY a") == ["1", "2"])
    let error = postgresError {
      try connection.execute("INSERT INTO t VALUES (3); SELECT 1 / 0; INSERT INTO t VALUES (4)")
    }
    #expect(error?.sqlState == "22012" && error?.disposition == .rejectedRow)
    #expect(try connection.column("SELECT count(*) FROM t") == ["2"])
    #expect(connection.isConnected && connection.transactionStatus == .idle)
    #expect(connection.serverVersion >= 120_000)
  }

  @Test("Parameters and results are text or null, and binary results have the server's form")
  func queries() async throws {
    let connection = try await TestDatabase().connect()
    let text = try connection.query(
      "SELECT $1::text || 'x', $2::int, NULL, 'ü'", ["it's \\ \"q\"", "7"])
    #expect(text.rowCount == 1 && text.columnCount == 4)
    #expect(text[0, 0] == "it's \\ \"q\"x" && text[0, 1] == "7" && text[0, 3] == "ü")
    #expect(text[0, 2] == nil)
    let null = try connection.query("SELECT $1::text IS NULL", [nil])
    #expect(null[0, 0] == "t")
    let binary = try connection.queryBinary("SELECT 258::int, NULL::int, ''::text")
    #expect(binary.withField(0, 0).map(Array.init) == [0, 0, 1, 2])
    #expect(binary.withField(0, 1) == nil)
    #expect(binary.withField(0, 2)?.count == 0)
    let changed = try connection.query("CREATE TABLE t AS SELECT generate_series(1, 5) AS a")
    #expect(changed.affectedRowCount == 5)
  }

  @Test("Rows of a binary COPY arrive for any chunk size")
  func copies() async throws {
    let connection = try await TestDatabase().connect()
    try connection.execute("CREATE TABLE t (a int, b bytea)")
    let sizes = [0, 1, 65_522, 65_523, 65_524, 65_535, 65_536, 65_537, 200_000, 3]
    let copied = try connection.copyIn("COPY t FROM STDIN (FORMAT binary)") { writer in
      for (index, size) in sizes.enumerated() {
        try writer.row(fieldCount: 2)
        try withUnsafeBytes(of: Int32(index).bigEndian) {
          try writer.value($0.bindMemory(to: UInt8.self))
        }
        let bytes = [UInt8](repeating: UInt8(index), count: size)
        try bytes.withUnsafeBufferPointer { try writer.value($0) }
      }
      try writer.row(fieldCount: 2)
      try writer.nulls(2)
    }
    #expect(copied == sizes.count + 1)
    let rows = try connection.rows(
      "SELECT length(b), b = decode(repeat(lpad(to_hex(a), 2, '0'), length(b)), 'hex') FROM t "
        + "WHERE a IS NOT NULL ORDER BY a")
    #expect(rows == sizes.map { ["\($0)", "t"] })
  }

  @Test("Statements before a COPY run with it")
  func copyAfterStatements() async throws {
    let connection = try await TestDatabase().connect()
    let sql =
      connection.beginStatement
      + "; CREATE TABLE t (a int); SELECT 1; COPY t FROM STDIN (FORMAT binary)"
    #expect(try connection.copyIn(sql) { _ in } == 0)
    #expect(connection.transactionStatus == .inTransaction)
    try connection.execute("COMMIT")
    let error = postgresError {
      try connection.copyIn("SELECT 1 / 0; COPY t FROM STDIN (FORMAT binary)") { _ in
        Issue.record("there is no COPY to write to")
      }
    }
    #expect(error?.sqlState == "22012")
    #expect(postgresError { try connection.copyIn("SELECT 1") { _ in } }?.disposition == .resources)
    #expect(
      postgresError { try connection.execute("COPY t FROM STDIN") }?.disposition == .resources)
    #expect(try connection.column("SELECT count(*) FROM t") == ["0"])
  }

  @Test("A COPY whose writer fails copies nothing and reports the writer's error")
  func copyGivenUp() async throws {
    struct Stop: Error {}
    let connection = try await TestDatabase().connect()
    try connection.execute("CREATE TABLE t (a int)")
    #expect(throws: Stop.self) {
      try connection.copyIn("COPY t FROM STDIN (FORMAT binary)") { writer in
        try writer.row(fieldCount: 1)
        try writer.nulls(1)
        throw Stop()
      }
    }
    #expect(connection.transactionStatus == .idle)
    #expect(try connection.column("SELECT count(*) FROM t") == ["0"])
  }

  /// One row of nulls.
  private func sendRow(_ connection: PostgresConnection, _ sql: String) throws {
    try connection.sendCopyIn(sql) { writer in
      try writer.row(fieldCount: 1)
      try writer.nulls(1)
    }
  }

  @Test("A COPY takes rows until it ends or another statement starts")
  func openCopy() async throws {
    let connection = try await TestDatabase().connect()
    try connection.execute("CREATE TABLE t (a int); CREATE TABLE u (a int)")
    let sql = "COPY t FROM STDIN (FORMAT binary)"
    #expect(!connection.isTakingCopy(sql))
    for _ in 0..<3 {
      try self.sendRow(connection, sql)
      #expect(connection.isTakingCopy(sql))
    }
    try self.sendRow(connection, "COPY u FROM STDIN (FORMAT binary)")
    #expect(!connection.isTakingCopy(sql))
    #expect(try connection.finishCopy() == 1)
    #expect(try connection.finishCopy() == 0)
    #expect(try connection.column("SELECT count(*) FROM t") == ["3"])
    for _ in 0..<2 { try self.sendRow(connection, sql) }
    #expect(try connection.finishCopy() == 2)
    try self.sendRow(connection, sql)
    try connection.giveUpCopy()
    try connection.giveUpCopy()
    #expect(connection.transactionStatus == .idle)
    #expect(try connection.column("SELECT count(*) FROM t") == ["5"])
  }

  @Test("An old COPY closes before the statement timeout ends it")
  func oldCopy() async throws {
    // A quarter of it has always passed.
    let connection = try await TestDatabase().connect { $0.statementTimeout = .nanoseconds(4) }
    try connection.execute("CREATE TABLE t (a int)")
    let sql = "COPY t FROM STDIN (FORMAT binary)"
    try self.sendRow(connection, sql)
    #expect(!connection.isTakingCopy(sql))
    try self.sendRow(connection, sql)
    #expect(try connection.finishCopy() == 1)
    #expect(try connection.column("SELECT count(*) FROM t") == ["2"])
  }

  @Test("The end of an open COPY reports why a row was refused")
  func refusedInOpenCopy() async throws {
    let connection = try await TestDatabase().connect()
    try connection.execute("CREATE TABLE t (a int NOT NULL)")
    let sql = "COPY t FROM STDIN (FORMAT binary)"
    for _ in 0..<3 { try self.sendRow(connection, sql) }
    #expect(postgresError { try connection.finishCopy() }?.sqlState == "23502")
    #expect(connection.transactionStatus == .idle)
    #expect(try connection.column("SELECT count(*) FROM t") == ["0"])
  }

  @Test("Messages name objects of the database, and never show values of rows")
  func messages() async throws {
    let connection = try await TestDatabase().connect()
    try connection.execute(
      """
      CREATE TABLE accounts (id text PRIMARY KEY, n int CONSTRAINT positive CHECK (n > 0));
      INSERT INTO accounts VALUES ('S3CRET', 1);
      CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'no % here', NEW.id USING ERRCODE = TG_ARGV[0]; END $$;
      CREATE TABLE guarded (id text);
      CREATE TRIGGER t BEFORE INSERT ON guarded FOR EACH ROW EXECUTE FUNCTION refuse('P0001');
      CREATE TABLE odd (id text);
      CREATE TRIGGER t BEFORE INSERT ON odd FOR EACH ROW EXECUTE FUNCTION refuse('UX001');
      CREATE FUNCTION name_it() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '23514', TABLE = NEW.id, COLUMN = NEW.id,
        CONSTRAINT = NEW.id, DATATYPE = NEW.id; END $$;
      CREATE TABLE named (id text);
      CREATE TRIGGER t BEFORE INSERT ON named FOR EACH ROW EXECUTE FUNCTION name_it();
      CREATE TABLE standard (id text);
      CREATE TRIGGER t BEFORE INSERT ON standard FOR EACH ROW EXECUTE FUNCTION refuse('23514');
      CREATE TABLE guarded_ids AS SELECT 'S3CRET' AS id;
      CREATE TABLE foreseen (id text, r regclass);
      CREATE TABLE checked (id text CHECK (id::regtype IS NOT NULL));
      CREATE TABLE searched (id text);
      CREATE FUNCTION query(text) RETURNS tsquery IMMUTABLE LANGUAGE sql AS 'SELECT $1::tsquery';
      CREATE INDEX ON searched ((query(id)));
      """)
    let statements: [(sql: String, sqlState: String, name: String?)] = [
      ("INSERT INTO accounts VALUES ('S3CRET', 2)", "23505", "accounts_pkey"),
      ("INSERT INTO accounts VALUES ('S3CRET2', -1)", "23514", "positive"),
      ("INSERT INTO accounts VALUES ('S3CRET3', 'S3CRET'::text::int)", "22P02", nil),
      ("SELECT 'S3CRET'::text::date", "22007", nil),
      ("INSERT INTO guarded VALUES ('S3CRET')", "P0001", nil),
      ("INSERT INTO odd VALUES ('S3CRET')", "UX001", nil),
      ("INSERT INTO standard VALUES ('S3CRET')", "23514", nil),
      ("INSERT INTO named VALUES ('S3CRET')", "23514", nil),
      ("INSERT INTO foreseen SELECT id, id::regclass FROM guarded_ids", "42P01", nil),
      ("INSERT INTO checked SELECT id FROM guarded_ids", "42704", nil),
      ("INSERT INTO checked SELECT '& ' || id FROM guarded_ids", "42601", nil),
      ("INSERT INTO searched SELECT id || ' &' FROM guarded_ids", "42601", nil),
    ]
    for (sql, sqlState, name) in statements {
      let error = try #require(postgresError { try connection.execute(sql) })
      #expect(error.sqlState == sqlState && error.refusesRow, "\(error)")
      #expect(!error.message.contains("S3CRET"), "\(error.message)")
      #expect(error.column?.contains("S3CRET") != true)
      if let name { #expect(error.message.contains(name)) }
    }
  }

  @Test("Refused, missing, misnamed and lost databases give different errors")
  func dispositions() async throws {
    let database = try await TestDatabase()
    func failure(_ url: String) -> PostgresError? {
      postgresError {
        _ = try PostgresConnection(
          PostgresConnectionConfiguration(url: url, connectTimeout: .seconds(2)))
      }
    }
    let missing = failure(database.cluster.url(database: "nowhere"))
    #expect(missing?.sqlState == "3D000" && missing?.disposition == .refused)
    let unknown = failure("postgresql://nobody@127.0.0.1:\(database.cluster.port)/\(database.name)")
    #expect(unknown?.sqlState == "28000" && unknown?.disposition == .refused)
    #expect(failure("postgresql://127.0.0.1:1/x")?.disposition == .retry)
    for url in [
      "host=127.0.0.1 prot=S3CRET", "host=127.0.0.1 password=x S3CRET",
      "host=127.0.0.1 port=S3CRET",
      "postgresql://u:S3C%ZZRET@[127.0.0.1/x", "host=127.0.0.1 sslmode=S3CRET",
      "host=a,b port=1,2,3",
    ] {
      let error = try #require(failure(url))
      #expect(error.disposition == .configuration, "\(error)")
      #expect(!error.message.contains("S3C"))
    }

    let connection = try database.connect()
    try connection.execute("CREATE ROLE \"reader_\(database.name)\"; CREATE TABLE t (a int)")
    #expect(
      postgresError { try connection.execute("SELECT * FROM u") }?.disposition == .configuration)
    try connection.execute("SET ROLE \"reader_\(database.name)\"")
    let refused = postgresError { try connection.execute("SELECT * FROM t") }
    #expect(refused?.sqlState == "42501" && refused?.disposition == .refused)
  }

  @Test("Time limits apply to the transaction and end with it")
  func timeLimits() async throws {
    let database = try await TestDatabase()
    let holder = try database.connect()
    try holder.execute("CREATE TABLE t (a int)")
    try holder.execute("BEGIN; LOCK TABLE t")
    let connection = try database.connect {
      $0.statementTimeout = .seconds(20)
      $0.lockTimeout = .milliseconds(20)
    }
    let error = postgresError {
      try connection.transaction { () throws(PostgresError) in
        try connection.execute("SELECT * FROM t")
      }
    }
    #expect(error?.sqlState == "55P03" && error?.disposition == .retry)
    #expect(connection.transactionStatus == .idle)
    try connection.begin()
    #expect(try connection.column("SHOW statement_timeout") == ["20s"])
    try connection.execute("COMMIT")
    #expect(try connection.column("SHOW statement_timeout") == ["0"])
    #expect(try connection.column("SHOW application_name") == ["pubsub-etl"])
    #expect(try connection.column("SHOW client_encoding") == ["UTF8"])
  }

  @Test("A connection that the server ends is recognized as lost and reopened")
  func reconnects() async throws {
    let database = try await TestDatabase()
    let (connection, other) = (try database.connect(), try database.connect())
    try connection.execute("CREATE TABLE t (a int)")
    let error = postgresError {
      try connection.copyIn("COPY t FROM STDIN (FORMAT binary)") { writer in
        try other.terminateOthers()
        let bytes = [UInt8](repeating: 0, count: 100_000)
        for _ in 0..<50 { try bytes.withUnsafeBufferPointer { try writer.raw($0) } }
      }
    }
    #expect(error?.disposition == .retry)
    #expect(!connection.isConnected && connection.transactionStatus == .unknown)
    #expect(postgresError { try connection.execute("SELECT 1") }?.disposition == .retry)
    try connection.reset()
    #expect(connection.isConnected)
    #expect(try connection.column("SELECT count(*) FROM t") == ["0"])
  }

  @Test("A connection to a server that stops answering is closed")
  func silentServer() async throws {
    let database = try await TestDatabase()
    let connection = try database.connect {
      $0.statementTimeout = .milliseconds(1)
      $0.silenceTimeout = .milliseconds(50)
    }
    // Outside `begin` the server has no limit of its own: nothing ends this but the client.
    let error = postgresError { try connection.execute("SELECT pg_sleep(600)") }
    #expect(error?.sqlState == "08006" && error?.disposition == .retry)
    #expect(!connection.isConnected)
    try connection.reset()
    #expect(connection.isConnected)
  }

  @Test("A connection to a host that accepts it but does not answer is closed")
  func silentHost() throws {
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(listener) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let code = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, length) == 0 && listen(listener, 1) == 0
          ? getsockname(listener, $0, &length) : -1
      }
    }
    try #require(code == 0)
    let port = UInt16(bigEndian: address.sin_port)
    let error = postgresError {
      _ = try PostgresConnection(
        PostgresConnectionConfiguration(
          url: "host=127.0.0.1 port=\(port) user=x connect_timeout=2"))
    }
    #expect(error?.sqlState == "08006" && error?.disposition == .retry)
  }
}
