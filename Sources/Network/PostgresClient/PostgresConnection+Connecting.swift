internal import CPQ
internal import Clocks
internal import Glibc

extension PostgresConnection {
  static let applicationName = "pubsub-etl"

  /// Opens a connection (`PGconn *`, the caller's), in non-blocking mode, text in UTF-8.
  ///
  /// The steps are libpq's asynchronous ones, since only then can the error's SQLSTATE be asked
  /// for: a wrong password and a server that is starting up differ in nothing else.
  ///
  /// - Parameter place: settings that go before those of the URL.
  static func connect(
    _ configuration: PostgresConnectionConfiguration, to place: [(String, String)] = [],
    givesUp: (() -> Bool)? = nil
  ) throws(PostgresError) -> OpaquePointer {
    guard let connection = Self.start(configuration, to: place) else {
      preconditionFailure("libpq: out of memory")
    }
    var isOpen = false
    defer { if !isOpen { PQfinish(connection) } }
    // Before anything is printed: the default processor writes to standard error.
    PQsetNoticeReceiver(connection, { _, _ in }, nil)
    PQsetErrorVerbosity(connection, PQERRORS_VERBOSE)
    let began = configuration.clock.now
    let deadline = began + Self.timeout(of: connection, configuration)
    var limit = AnswerLimit(PQsocket(connection))
    // Starts as if libpq had asked to write (manual, PQconnectPoll).
    var wanted = Int16(POLLOUT)
    if PQstatus(connection) == CONNECTION_BAD { throw Self.refusal(connection) }
    polling: while true {
      guard
        Self.poll(
          PQsocket(connection), wanted, by: deadline, configuration.clock, givesUp: givesUp) != nil
      else {
        throw .connectionLost(
          "no connection to \(Self.place(connection)) in time; check that the server is running",
          since: began)
      }
      // Each host has a socket of its own, and so has each attempt with and without TLS.
      if limit.socket != PQsocket(connection) { limit = AnswerLimit(PQsocket(connection)) }
      guard !limit.isExceeded(Self.maxLoginBytes) else {
        throw PostgresError(
          .resources,
          "postgres: \(Self.place(connection)) sends more than a PostgreSQL server "
            + "does at a login; check host and port in url")
      }
      switch PQconnectPoll(connection) {
      case PGRES_POLLING_READING: wanted = Int16(POLLIN)
      case PGRES_POLLING_WRITING: wanted = Int16(POLLOUT)
      case PGRES_POLLING_OK: break polling
      default: throw Self.refusal(connection)
      }
    }
    PQsetErrorVerbosity(connection, PQERRORS_DEFAULT)
    guard PQsetnonblocking(connection, 1) == 0 else { throw Self.refusal(connection) }
    isOpen = true
    return connection
  }

  /// Parameters and notices of a login; more than any server has.
  private static let maxLoginBytes = 8 << 20

  enum ServerState {
    /// It answers a statement on a new connection, or refuses the connection.
    case answering
    /// It takes new connections, and leaves the first statement on them unanswered.
    case stalled
    case stopped
  }

  /// The state of the server according to a new connection.
  func serverState() -> ServerState {
    let place = [
      ("host", PQhost(self.connection)), ("hostaddr", PQhostaddr(self.connection)),
      ("port", PQport(self.connection)),
    ].compactMap { keyword, value -> (String, String)? in
      guard let value, value.pointee != 0 else { return nil }
      return (keyword, String(cString: value))
    }
    var configuration = self.configuration
    configuration.silenceTimeout = min(configuration.silenceTimeout, .seconds(5))
    let other: PostgresConnection
    do throws(PostgresError) {
      other = PostgresConnection(
        configuration,
        try Self.connect(
          configuration, to: place + [("target_session_attrs", "any")], givesUp: self.givesUp))
    } catch {
      return error.sqlState == SQLState.connectionFailure ? .stopped : .answering
    }
    other.isInquiry = true
    other.givesUp = self.givesUp
    do throws(PostgresError) {
      try other.execute("SELECT 1")
      return .answering
    } catch {
      return error.sqlState == SQLState.connectionFailure ? .stalled : .answering
    }
  }

  private static func start(
    _ configuration: PostgresConnectionConfiguration, to place: [(String, String)]
  ) -> OpaquePointer? {
    // Before the URL: may be overridden by it. A server that does not answer keepalives for a
    // minute, or takes no data for 30 s, is dead.
    var options = [
      ("fallback_application_name", Self.applicationName), ("keepalives_idle", "30"),
      ("keepalives_interval", "10"), ("keepalives_count", "3"), ("tcp_user_timeout", "30000"),
    ]
    if getenv("PGCONNECT_TIMEOUT") == nil {
      options.append(("connect_timeout", "\(configuration.connectTimeout.components.seconds)"))
    }
    if !configuration.url.isEmpty { options.append(("dbname", configuration.url)) }
    options += place + [("client_encoding", "UTF8")]
    var keywords = options.map { UnsafePointer(strdup($0.0)) } + [nil]
    var values = options.map { UnsafePointer(strdup($0.1)) } + [nil]
    defer { for text in keywords + values { free(UnsafeMutablePointer(mutating: text)) } }
    return PQconnectStartParams(&keywords, &values, 1)
  }

  /// `connect_timeout` for each of the hosts; the asynchronous functions leave it to the caller.
  private static func timeout(
    of connection: OpaquePointer, _ configuration: PostgresConnectionConfiguration
  ) -> Duration {
    guard let options = PQconninfo(connection) else { return configuration.connectTimeout }
    defer { PQconninfoFree(options) }
    var perHost = configuration.connectTimeout
    var hostCount = 1
    var option = options
    while let keyword = option.pointee.keyword {
      let value = option.pointee.val.map { String(cString: $0) } ?? ""
      switch String(cString: keyword) {
      case "connect_timeout":
        // As in libpq, a value below 2 means 2. No limit would be endless; an hour is enough.
        if let seconds = Int(value) { perHost = .seconds(seconds > 0 ? max(seconds, 2) : 3600) }
      case "host", "hostaddr":
        hostCount = max(hostCount, value.split(separator: ",").count)
      default: break
      }
      option += 1
    }
    return perHost * hostCount
  }

  static func place(_ connection: OpaquePointer) -> String {
    let host = PQhost(connection).map { String(cString: $0) } ?? "the server"
    return host
  }

  /// libpq's message in one line: what it says itself and the primary message of each server that
  /// was tried. Detail, hint and context, which may hold values, and the password are left out.
  static func message(of connection: OpaquePointer) -> String {
    guard let text = PQerrorMessage(connection) else { return "" }
    let password = PQpass(connection).map { String(cString: $0) } ?? ""
    return Self.primary(String(cString: text), without: password)
  }

  static func primary(_ text: String, without password: String) -> String {
    var lines: [String] = []
    var isPrimary = true
    for line in text.split(separator: "\n") {
      if Self.additions.contains(where: line.hasPrefix) { isPrimary = false }
      if line.hasPrefix("connection to server ") { isPrimary = true }
      // Some of libpq's own messages end with a point, which what follows would go on after.
      if isPrimary { lines.append(String(line.trimming { $0.isWhitespace || $0 == "." })) }
    }
    let message = lines.joined(separator: "; ")
    guard password.utf8.count >= 4 else { return message }
    return message.split(separator: password, omittingEmptySubsequences: false)
      .joined(separator: "<redacted>")
  }

  /// What libpq puts before the fields that follow the primary message; their texts may have
  /// several lines.
  private static let additions = [
    "DETAIL: ", "HINT: ", "QUERY: ", "CONTEXT: ", "SCHEMA NAME: ", "TABLE NAME: ", "COLUMN NAME: ",
    "DATATYPE NAME: ", "CONSTRAINT NAME: ", "LOCATION: ", "LINE ",
  ]

  /// The events that have come, 0 for errors and such; nil when none came until `deadline`, or until
  /// `givesUp`.
  static func poll(
    _ socket: Int32, _ events: Int16, by deadline: ContinuousClock.Instant?,
    _ clock: ProcessClock, givesUp: (() -> Bool)?
  ) -> Int16? {
    while true {
      var milliseconds: Int32 = givesUp == nil ? 3_600_000 : 200
      if let deadline {
        let left = (deadline - clock.now).components
        guard left.seconds >= 0, left.attoseconds >= 0 else { return nil }
        // Rounded up, so that the last wait is not a busy one.
        milliseconds = Int32(
          min(
            left.seconds * 1000 + left.attoseconds / 1_000_000_000_000_000 + 1, Int64(milliseconds))
        )
      }
      var descriptor = pollfd(fd: socket, events: events, revents: 0)
      let count = clock.waitingForOthers { Glibc.poll(&descriptor, 1, milliseconds) }
      if count > 0 { return descriptor.revents }
      // What poll itself refuses, libpq reports when it uses the socket.
      if count < 0, errno != EINTR { return 0 }
      if let givesUp, givesUp() { return nil }
    }
  }
}

extension Substring {
  fileprivate func trimming(while isMargin: (Character) -> Bool) -> Substring {
    var rest = self.drop(while: isMargin)
    while let last = rest.last, isMargin(last) { rest.removeLast() }
    return rest
  }
}
