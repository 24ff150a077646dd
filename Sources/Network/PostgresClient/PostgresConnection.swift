internal import CPQ
internal import Clocks
internal import Glibc

/// A connection to a PostgreSQL server, or to a pooler before it.
///
/// Owns its `PGconn`. Used by one thread at a time; calls block, at most as long as the
/// configuration says: sockets are polled with a deadline, so neither a dead nor a stopped server
/// blocks a run without end. Notices are discarded. No session settings are made, because a pooler
/// in transaction mode shares sessions; `begin` sets the time limits. libpq masks SIGPIPE while it
/// writes.
package final class PostgresConnection {
  package enum TransactionStatus: Sendable {
    case idle, inTransaction, failed, unknown
  }

  let configuration: PostgresConnectionConfiguration
  var connection: OpaquePointer  // PGconn *
  /// Called while the connection waits for the server; true gives the connection up.
  package var givesUp: (() -> Bool)?
  /// Called while the connection waits for the server, for work that may use other connections, not
  /// this one. Returns how long to wait before the next call.
  package var whileWaiting: (() -> Duration)?
  /// Given up: the server was silent for too long.
  private var isAbandoned = false
  /// The last sign of life: an answer, or what a statement waits for since.
  private var heardAt: ContinuousClock.Instant
  private var answerLimit: AnswerLimit
  /// A statement was answered since the login.
  private var hasAnswered = false
  /// The statements are such that every server answers them at once: see `quickly`.
  private var expectsQuickAnswers = false
  /// Data that the server has no room for stay in libpq's buffer: see `withoutWaiting`.
  private var leavesDataUnsent = false
  /// Made to find out whether the server answers, so its first silence ends it.
  var isInquiry = false
  private(set) var fault = AnswerFault()
  /// The COPY that is under way, until its answer is taken.
  var copyUnderWay: CopyUnderWay?

  /// Connects.
  package convenience init(
    _ configuration: PostgresConnectionConfiguration
  ) throws(PostgresError) {
    self.init(configuration, try Self.connect(configuration))
  }

  /// - Parameter connection: an open one, which it owns from here on.
  init(_ configuration: PostgresConnectionConfiguration, _ connection: OpaquePointer) {
    self.configuration = configuration
    self.connection = connection
    self.heardAt = configuration.clock.now
    self.answerLimit = AnswerLimit(PQsocket(self.connection))
  }

  deinit { PQfinish(self.connection) }

  /// False once the connection is known to be lost; `reset` makes a new one.
  package var isConnected: Bool {
    !self.isAbandoned && self.fault.error == nil && PQstatus(self.connection) == CONNECTION_OK
  }

  /// Call it where the last answers are used, after which no statement follows.
  ///
  /// - Throws: `PostgresError` (resources) when the server left out rows or columns that were read.
  package func checkAnswers() throws(PostgresError) {
    if let error = self.fault.error { throw error }
  }

  package var transactionStatus: TransactionStatus {
    guard self.isConnected else { return .unknown }
    return switch PQtransactionStatus(self.connection) {
    case PQTRANS_IDLE: .idle
    case PQTRANS_INTRANS: .inTransaction
    case PQTRANS_INERROR: .failed
    default: .unknown
    }
  }

  /// 150004 for 15.4.
  package var serverVersion: Int { Int(PQserverVersion(self.connection)) }

  /// `UTF8`, as servers say at every login; nil behind a pooler that does not.
  package var serverEncoding: String? {
    PQparameterStatus(self.connection, "server_encoding").map { String(cString: $0) }
  }

  /// Closes the connection and opens another. After an error there is none, and `reset` may be
  /// called again.
  package func reset() throws(PostgresError) {
    self.isAbandoned = true
    _ = shutdown(PQsocket(self.connection), Int32(SHUT_RDWR))
    let connection = try Self.connect(self.configuration, givesUp: self.givesUp)
    PQfinish(self.connection)
    self.connection = connection
    self.isAbandoned = false
    self.hasAnswered = false
    self.fault = AnswerFault()
    self.copyUnderWay = nil
  }

  // MARK: Statements

  /// Runs statements, separated by semicolons, in the simple protocol; results are dropped.
  package func execute(_ sql: String) throws(PostgresError) {
    try self.start("execute") { PQsendQuery(self.connection, sql) }
    _ = try self.finish(sql)
  }

  /// The same for statements of which the last has a result, in text.
  package func lastResult(of sql: String) throws(PostgresError) -> TextResult {
    try self.start("execute") { PQsendQuery(self.connection, sql) }
    return TextResult(try self.resultOf(sql))
  }

  /// Runs one statement; parameters `$1`… and results are text.
  @discardableResult
  package func query(
    _ sql: String, _ parameters: [String?] = []
  ) throws(PostgresError) -> TextResult {
    TextResult(try self.run(sql, parameters, isBinary: false))
  }

  /// Runs one statement; parameters are text, results are in text or binary format. U+0000, which
  /// would end a parameter early and which no text of the server can hold, is replaced.
  func run(
    _ sql: String, _ parameters: [String?], isBinary: Bool
  ) throws(PostgresError) -> PostgresResult {
    var copies = parameters.map {
      $0.map { UnsafePointer(strdup(PostgresText.storable($0))) } ?? nil
    }
    defer { for copy in copies { free(UnsafeMutablePointer(mutating: copy)) } }
    try self.start("query") {
      copies.withUnsafeMutableBufferPointer { values in
        PQsendQueryParams(
          self.connection, sql, Int32(values.count), nil, values.baseAddress, nil, nil,
          isBinary ? 1 : 0)
      }
    }
    return try self.resultOf(sql)
  }

  private func resultOf(_ sql: String) throws(PostgresError) -> PostgresResult {
    if let result = try self.finish(sql) { return result }
    self.fault.note("\(Self.label(sql)) has no answer")
    try self.checkAnswers()
    preconditionFailure("a fault that was noted is thrown")
  }

  /// `BEGIN` with the time limits, which end with the transaction; to be put before other
  /// statements of one `execute`. Defaults of the role, the database or the server that would change
  /// what is read or written are set aside.
  package var beginStatement: String {
    let statement = self.configuration.statementTimeout.milliseconds
    let lock = self.configuration.lockTimeout.milliseconds
    return "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = \(statement); "
      + "SET LOCAL lock_timeout = \(lock); SET LOCAL array_nulls = on"
  }

  package func begin() throws(PostgresError) {
    try self.quickly { () throws(PostgresError) in try self.execute(self.beginStatement) }
  }

  /// Runs statements that read no large tables and wait for no locks. A server that leaves one of
  /// them unanswered has stopped, even if it still takes new connections.
  package func quickly<Value, Failure>(
    _ body: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    let outer = self.expectsQuickAnswers
    self.expectsQuickAnswers = true
    defer { self.expectsQuickAnswers = outer }
    return try body()
  }

  /// Hands data to libpq, which sends what the server has room for. The rest follows with the next
  /// data or `hasRoomForCopy`.
  func withoutWaiting<Value>(
    _ body: () throws -> Value
  ) rethrows -> Value {
    let outer = self.leavesDataUnsent
    self.leavesDataUnsent = true
    defer { self.leavesDataUnsent = outer }
    return try body()
  }

  /// `BEGIN` of a transaction that writes many values.
  ///
  /// Rows too long for a quarter of a page are compressed by the server, with LZ4 several times
  /// faster than with its default, pglz. Left alone is what somebody has decided on, for the server,
  /// the database, the role or a column; servers before 14, or built without LZ4, do not know it.
  package var beginLoadStatement: String {
    """
    \(self.beginStatement); SELECT set_config(name, 'lz4', true) FROM pg_settings \
    WHERE name = 'default_toast_compression' AND source = 'default' AND 'lz4' = ANY (enumvals)
    """
  }

  package func beginLoad() throws(PostgresError) { try self.execute(self.beginLoadStatement) }

  /// Runs statements in a transaction of their own; nothing stays of it when `body` throws.
  package func transaction<Value>(
    _ body: () throws(PostgresError) -> Value
  ) throws(PostgresError) -> Value {
    try self.begin()
    let value: Value
    do throws(PostgresError) {
      value = try body()
    } catch {
      // The error that ended the body is thrown; if the rollback fails too, the connection is closed.
      if self.isConnected { try? self.execute("ROLLBACK") }
      throw error
    }
    try self.execute("COMMIT")
    return value
  }

  // MARK: Protocol

  /// Hands something to libpq and sends it to the last byte.
  func start(_ label: String, _ send: () -> Int32) throws(PostgresError) {
    guard !self.isAbandoned else { throw .connectionLost("the connection has been given up") }
    if let error = self.fault.error {
      self.abandon()
      throw error
    }
    self.heardAt = self.configuration.clock.now
    self.answerLimit = AnswerLimit(PQsocket(self.connection))
    // 0 would mean "again later" to PQputCopyData only, whose buffer is empty here.
    guard send() == 1 else {
      if PQstatus(self.connection) == CONNECTION_OK {
        throw PostgresError(.bug, "postgres: \(label): \(self.libraryMessage)")
      }
      throw .connectionLost("\(label): \(self.libraryMessage)")
    }
    let deadline = self.deadline()
    while true {
      switch PQflush(self.connection) {
      case 0: return
      case 1:
        if self.leavesDataUnsent { return }
        // Also reads input, because the server may wait until its messages are read.
        if try self.wait(Int16(POLLIN | POLLOUT), by: deadline) & Int16(POLLIN) != 0,
          try !self.consumeInput()
        {
          return
        }  // lost: the results tell how
      default: return
      }
    }
  }

  /// Takes all results of what was sent; returns the last, throws the first error.
  func finish(_ sql: String) throws(PostgresError) -> PostgresResult? {
    var last: PostgresResult?
    var failure: PostgresError?
    let deadline = self.deadline()
    while let result = try self.nextResult(by: deadline) {
      switch result.status {
      case PGRES_COMMAND_OK, PGRES_TUPLES_OK, PGRES_EMPTY_QUERY: last = result
      case PGRES_COPY_IN:
        _ = PQputCopyEnd(self.connection, "not expected")
        failure =
          failure
          ?? PostgresError(.resources, "postgres: \(Self.label(sql)): a COPY is not expected")
      case PGRES_COPY_OUT, PGRES_COPY_BOTH:
        self.abandon()
        throw PostgresError(.resources, "postgres: \(Self.label(sql)): a COPY is not expected")
      default: failure = failure ?? self.error(of: result, sql)
      }
    }
    if let failure { throw failure }
    return last
  }

  /// - Parameter deadline: that of all results of what was sent.
  func nextResult(
    by deadline: ContinuousClock.Instant?
  ) throws(PostgresError) -> PostgresResult? {
    while PQisBusy(self.connection) != 0 {
      _ = try self.wait(Int16(POLLIN), by: deadline)
      // Lost: what has come before, and the loss itself, are in the results.
      if try !self.consumeInput() { break }
    }
    self.dropNotifications()
    return PQgetResult(self.connection).map { PostgresResult($0, self.fault) }
  }

  /// - Returns: false when the connection is lost.
  func consumeInput() throws(PostgresError) -> Bool {
    guard !self.answerLimit.isExceeded(self.configuration.maxAnswerBytes) else {
      self.abandon()
      self.fault.note(
        "the answer to a statement is larger than \(self.configuration.maxAnswerBytes >> 20) MB")
      throw self.fault.error ?? .connectionLost("the answer is too large")
    }
    let isThere = PQconsumeInput(self.connection) != 0
    self.dropNotifications()
    return isThere
  }

  private func wait(
    _ events: Int16, by deadline: ContinuousClock.Instant?
  ) throws(PostgresError) -> Int16 {
    waiting: while true {
      let inquiry = self.configuration.clock.now + self.configuration.silenceTimeout
      let limit = min(deadline ?? inquiry, inquiry)
      let answer =
        self.work(until: events, or: limit)
        ?? Self.poll(
          PQsocket(self.connection), events, by: limit, self.configuration.clock,
          givesUp: self.givesUp)
      let now = self.configuration.clock.now
      if let answer {
        self.heardAt = now
        if answer & Int16(POLLIN) != 0 { self.hasAnswered = true }
        return answer
      }
      // A statement may take long, and a server that has stopped says as little.
      guard deadline.map({ now < $0 }) ?? true, self.givesUp?() != true else { break }
      switch self.serverState() {
      case .answering: self.heardAt = now
      case .stalled:
        let limit = self.configuration.stallTimeout
        if let limit, self.configuration.clock.now - self.heardAt >= limit { break waiting }
      case .stopped: break waiting
      }
    }
    self.abandon()
    throw .connectionLost(
      "the server did not answer in time; the connection was closed", since: self.heardAt)
  }

  /// Does other work until events come.
  ///
  /// - Returns: nil if there is no other work, at `limit`, or when the connection is given up.
  private func work(until events: Int16, or limit: ContinuousClock.Instant) -> Int16? {
    var pause = Duration.zero
    while self.whileWaiting != nil {
      var descriptor = pollfd(fd: PQsocket(self.connection), events: events, revents: 0)
      let count = self.configuration.clock.waitingForOthers {
        Glibc.poll(&descriptor, 1, Int32(pause.milliseconds))
      }
      if count > 0 { return descriptor.revents }
      guard self.configuration.clock.now < limit, self.givesUp?() != true else { return nil }
      if let next = self.whileWaiting?() { pause = next }
    }
    return nil
  }

  /// Ends the connection, so that the server ends the transaction.
  package func abandon() {
    self.isAbandoned = true
    _ = shutdown(PQsocket(self.connection), Int32(SHUT_RDWR))
  }

  /// Nil without a statement timeout: a statement may then take as long as it likes. The first one
  /// after the login is always a quick one.
  func deadline() -> ContinuousClock.Instant? {
    if self.isInquiry { return self.configuration.clock.now + self.configuration.silenceTimeout }
    if self.expectsQuickAnswers || !self.hasAnswered {
      return self.configuration.clock.now + self.configuration.silenceTimeout * 2
    }
    guard self.configuration.statementTimeout > .zero else { return nil }
    return self.configuration.clock.now + self.configuration.statementTimeout
      + self.configuration.silenceTimeout
  }

  /// - Parameters:
  ///   - sql: the statement that failed, or several.
  ///   - hasRows: it may have read or written rows.
  func error(of result: PostgresResult, _ sql: String, hasRows: Bool = true) -> PostgresError {
    guard let sqlState = result.field(PostgresField.sqlState) else {
      return .connectionLost("\(Self.label(sql)): \(self.libraryMessage)")
    }
    var report = ServerReport(
      sqlState: sqlState, primary: result.field(PostgresField.primary) ?? "",
      sourceFile: result.field(PostgresField.sourceFile),
      context: result.field(PostgresField.context),
      // A name of a type that is a value has positions too, but within a context.
      isAboutStatement: !hasRows
        || result.field(PostgresField.position) != nil
          && result.field(PostgresField.context) == nil,
      isAboutFunction: result.field(PostgresField.internalPosition) != nil)
    report.place = [
      ("table", PostgresField.table), ("column", PostgresField.column),
      ("constraint", PostgresField.constraint), ("type", PostgresField.type),
    ].compactMap { kind, code in result.field(code).map { (kind, $0) } }
    if !report.place.contains(where: { $0.kind == "column" }),
      let column = report.context.flatMap(PostgresError.copyColumn)
    {
      report.place.append(("column", column))
    }
    return PostgresError(report, during: sql)
  }

  /// libpq's own message, on one line.
  private var libraryMessage: String { Self.message(of: self.connection) }

  /// The first words of a statement, as long as they can be no values.
  static func label(_ sql: String) -> String {
    let words = sql.split(maxSplits: 6, whereSeparator: { $0.isWhitespace || $0 == ";" })
      .filter { !["IF", "NOT", "EXISTS"].contains($0) }
    let isName = { (word: Substring) in
      word.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
          UInt8(ascii: "_"), UInt8(ascii: "."), UInt8(ascii: "\""), 0x80...:
          true
        default: false
        }
      }
    }
    return words.prefix(3).prefix(while: isName).joined(separator: " ")
  }
}

/// `PG_DIAG_…`: character constants, which Swift does not import as such.
private enum PostgresField {
  static let sqlState = Int32(UInt8(ascii: "C"))
  static let primary = Int32(UInt8(ascii: "M"))
  static let table = Int32(UInt8(ascii: "t"))
  static let column = Int32(UInt8(ascii: "c"))
  static let constraint = Int32(UInt8(ascii: "n"))
  static let type = Int32(UInt8(ascii: "d"))
  static let context = Int32(UInt8(ascii: "W"))
  static let sourceFile = Int32(UInt8(ascii: "F"))
  static let position = Int32(UInt8(ascii: "P"))
  static let internalPosition = Int32(UInt8(ascii: "p"))
}

extension Duration {
  fileprivate var milliseconds: Int64 {
    let parts = self.components
    return parts.seconds * 1000 + parts.attoseconds / 1_000_000_000_000_000
  }
}
