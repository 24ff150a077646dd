import FoundationEssentials
import Glibc

/// A PostgreSQL server of its own in a temporary directory, on a loopback port and a socket there.
///
/// Everybody may log in as the superuser `postgres`. Nothing is forced to disk: a test may kill the
/// server but not the machine. It is stopped and its directory removed when the object goes or the
/// test process ends, however it ends. `PUBSUB_TEST_POSTGRES` may name the directory of other
/// server programs than the newest of `/usr/lib/postgresql`.
package final class PostgresCluster: Sendable {
  /// Whether the server programs are here and may be run.
  package static let isAvailable = programs != nil && account != nil

  /// The server that the tests of this process share, started at its first use.
  package static var shared: PostgresCluster {
    get async throws { try await self.starting.value }
  }
  private static let starting = Task.detached { try PostgresCluster() }

  package let port: UInt16
  /// The folder of the Unix socket.
  package var socketDirectory: String { self.directory }
  private let directory: String
  private let programs: String
  private let account: Account
  private let supervisor: pid_t
  /// Its end tells the supervisor to stop the server; closed by the kernel if the process dies.
  private let lifeline: Int32

  /// Makes and starts a server, in about a second.
  /// - Parameter settings: of `postgresql.conf`, such as `max_connections=20`.
  package init(settings: [String] = []) throws {
    guard let programs = Self.programs, let account = Self.account else {
      throw ProgramFailure(
        message: "no PostgreSQL server: install the package postgresql (as root its user too)")
    }
    var template = Array("/tmp/pubsub-etl-pg-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw TemporaryDirectoryError(code: errno) }
    let directory = String(
      decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    do {
      if let owner = account.owner { chown(directory, owner.user, owner.group) }
      let port = try Self.freePort()
      try runProgram(
        account.prefix + [
          "\(programs)/initdb", "--pgdata=\(directory)/data", "--username=postgres", "--auth=trust",
          "--encoding=UTF8", "--no-locale", "--no-sync",
        ])
      let configuration =
        [
          "listen_addresses='127.0.0.1'", "port=\(port)", "unix_socket_directories='\(directory)'",
          "fsync=off", "full_page_writes=off", "max_wal_size=256MB",
        ] + settings
      // Beside the defaults, which stay in force.
      try Data((configuration.joined(separator: "\n") + "\n").utf8)
        .write(to: URL(filePath: "\(directory)/data/postgresql.auto.conf"))
      (self.supervisor, self.lifeline) = try Self.supervise(
        account.prefix + ["/bin/sh", "-c", Self.supervision, "sh", programs, directory])
      self.port = port
    } catch {
      try? FileManager.default.removeItem(atPath: directory)
      throw error
    }
    self.programs = programs
    self.account = account
    self.directory = directory
  }

  deinit {
    close(self.lifeline)
    var status: Int32 = 0
    while waitpid(self.supervisor, &status, 0) == -1, errno == EINTR {}
  }

  /// For libpq, over TCP.
  package func url(database: String) -> String {
    "postgresql://postgres@127.0.0.1:\(self.port)/\(database)"
  }

  /// Makes an empty database and returns its name.
  package func makeDatabase() throws -> String {
    let name = "test_\(UInt64.random(in: 0 ... .max))"
    try runProgram(
      ["\(self.programs)/createdb", "--template=template0", "--maintenance-db"]
        + [self.url(database: "postgres"), name])
    return name
  }

  /// Restores a dump of a database into a new one and returns the name of that.
  package func copyDatabase(_ database: String) throws -> String {
    let copy = try self.makeDatabase()
    let directory = try TemporaryDirectory()
    let dump = "\(directory.path)/dump"
    try runProgram(
      ["\(self.programs)/pg_dump", "-Fc", "-f", dump, self.url(database: database)])
    try runProgram(["\(self.programs)/pg_restore", "-d", self.url(database: copy), dump])
    return copy
  }

  /// Runs a statement by `psql`.
  /// - Returns: rows in lines, columns divided by `|`, null as nothing, without the last line break.
  @discardableResult package func query(_ sql: String, database: String) throws -> String {
    let (output, input) = try Self.pipe()
    defer { close(output) }
    let process: pid_t
    do {
      defer { close(input) }
      process = try Self.spawn(
        ["\(self.programs)/psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", sql]
          + [self.url(database: database)], output: input)
    }
    var text: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while case let count = read(output, &chunk, chunk.count), count > 0 { text += chunk[..<count] }
    try Self.waitForSuccess(process, "psql")
    if text.last == UInt8(ascii: "\n") { text.removeLast() }
    return String(decoding: text, as: UTF8.self)
  }

  /// Ends the server as a crash would: connections break, the next start recovers from the log.
  /// For an instance of its own only.
  package func stopImmediately() throws {
    try self.control(["stop", "-m", "immediate"])
  }

  /// Starts the stopped server on the same port; returns when it takes connections.
  package func start() throws { try self.control(["start", "-l", "\(self.directory)/log"]) }

  private func control(_ arguments: [String]) throws {
    try runProgram(
      self.account.prefix
        + ["\(self.programs)/pg_ctl", "-s", "-w", "-D", "\(self.directory)/data"] + arguments)
  }
}

extension PostgresCluster {
  /// Starts the server, says so, waits for the end of its input, stops the server and cleans up.
  private static let supervision = """
    cd /
    trap '' HUP INT TERM
    "$1/pg_ctl" -s -w -D "$2/data" -l "$2/log" start && echo ready && cat >/dev/null
    "$1/pg_ctl" -s -w -D "$2/data" -m immediate stop 2>/dev/null
    rm -rf "$2"
    """

  /// Who runs the server: it refuses to be run by root.
  private struct Account {
    var prefix: [String]
    var owner: (user: uid_t, group: gid_t)?
  }

  private static let account: Account? = {
    guard geteuid() == 0 else { return Account(prefix: [], owner: nil) }
    guard let entry = getpwnam("postgres") else { return nil }
    let (user, group) = (entry.pointee.pw_uid, entry.pointee.pw_gid)
    return Account(
      prefix: ["setpriv", "--reuid=\(user)", "--regid=\(group)", "--clear-groups"],
      owner: (user, group))
  }()

  private static let programs: String? = {
    if let named = getenv("PUBSUB_TEST_POSTGRES") { return String(cString: named) }
    let root = "/usr/lib/postgresql"
    let versions = (try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []
    return versions.compactMap(Int.init).sorted(by: >).map { "\(root)/\($0)/bin" }
      .first { access("\($0)/postgres", X_OK) == 0 && access("\($0)/initdb", X_OK) == 0 }
  }()

  private static func freePort() throws -> UInt16 {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let code = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, length) == 0 ? getsockname(descriptor, $0, &length) : -1
      }
    }
    guard code == 0 else { throw ProgramFailure(message: "no free port: \(errno)") }
    return UInt16(bigEndian: address.sin_port)
  }

  private static func supervise(_ words: [String]) throws -> (pid_t, Int32) {
    let (input, lifeline) = try Self.pipe()
    let (output, ready) = try Self.pipe()
    defer {
      close(input)
      close(output)
    }
    let process: pid_t
    do {
      defer { close(ready) }
      process = try Self.spawn(words, input: input, output: ready)
    } catch {
      close(lifeline)
      throw error
    }
    var byte: UInt8 = 0
    guard read(output, &byte, 1) == 1 else {
      close(lifeline)
      try Self.waitForSuccess(process, "pg_ctl")
      throw ProgramFailure(message: "the PostgreSQL server did not start")
    }
    return (process, lifeline)
  }

  /// In a process group of its own, so that a Ctrl-C at the terminal does not reach it.
  private static func spawn(_ words: [String], input: Int32? = nil, output: Int32) throws -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    if let input {
      posix_spawn_file_actions_adddup2(&actions, input, 0)
    } else {
      posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    }
    posix_spawn_file_actions_adddup2(&actions, output, 1)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP))
    var pointers = words.map { strdup($0) }
    defer { for pointer in pointers { free(pointer) } }
    pointers.append(nil)
    var process: pid_t = 0
    let code = posix_spawnp(&process, words[0], &actions, &attributes, pointers, environ)
    guard code == 0 else { throw ProgramFailure(message: "\(words[0]) did not start: \(code)") }
    return process
  }

  private static func waitForSuccess(_ process: pid_t, _ name: String) throws {
    var status: Int32 = 0
    while waitpid(process, &status, 0) == -1, errno == EINTR {}
    guard status == 0 else { throw ProgramFailure(message: "\(name): wait status \(status)") }
  }

  private static func pipe() throws -> (read: Int32, write: Int32) {
    var ends: [Int32] = [-1, -1]
    guard Glibc.pipe(&ends) == 0 else { throw ProgramFailure(message: "pipe: \(errno)") }
    // A process that another thread starts meanwhile holds them too: the supervisor then waits for
    // that one's end as well.
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    return (ends[0], ends[1])
  }
}
