import FoundationEssentials
import Glibc

/// A certificate authority made for one test by the `openssl` program, and what it signs.
public final class TestAuthority: Sendable {
  private let directory: TemporaryDirectory

  /// PEM file of the authority's certificate.
  public var certificateFile: String { "\(self.directory.path)/ca.pem" }

  /// PEM files of a server.
  public struct Server: Sendable {
    public var certificateFile: String
    public var keyFile: String
  }

  public init() throws {
    self.directory = try TemporaryDirectory()
    let path = self.directory.path
    try runProgram(
      "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
      "-keyout", "\(path)/ca.key", "-out", "\(path)/ca.pem", "-days", "2", "-subj", "/CN=Test CA")
  }

  /// Makes a key and a certificate.
  /// - Parameters:
  ///   - names: subject alternative names in OpenSSL's form, such as `DNS:localhost,IP:127.0.0.1`.
  ///   - days: from now on; negative for a certificate that has expired.
  ///   - key: in OpenSSL's form, such as `rsa:1024`.
  ///   - isSelfSigned: has itself as its only authority.
  public func issue(
    _ names: String = "DNS:localhost,IP:127.0.0.1", days: Int = 2, key: String = "ec",
    isSelfSigned: Bool = false
  ) throws -> Server {
    let base = "\(self.directory.path)/\(UInt64.random(in: 0 ... .max))"
    try Data("subjectAltName=\(names)\nbasicConstraints=critical,CA:FALSE\n".utf8)
      .write(to: URL(filePath: "\(base).ext"))
    let curve = key == "ec" ? ["-pkeyopt", "ec_paramgen_curve:P-256"] : []
    try runProgram(
      ["openssl", "req", "-newkey", key] + curve + [
        "-nodes", "-keyout", "\(base).key", "-out", "\(base).csr", "-subj", "/CN=test server",
      ], showsErrors: false)
    let ca = "\(self.directory.path)/ca"
    let signer =
      isSelfSigned
      ? ["-signkey", "\(base).key"]
      : [
        "-CA", "\(ca).pem", "-CAkey", "\(ca).key", "-set_serial",
        "\(UInt32.random(in: 1 ... .max))",
      ]
    try runProgram(
      ["openssl", "x509", "-req", "-in", "\(base).csr"] + signer + [
        "-days", "\(days)", "-extfile", "\(base).ext", "-out", "\(base).pem",
      ], showsErrors: false)
    return Server(certificateFile: "\(base).pem", keyFile: "\(base).key")
  }
}

public struct ProgramFailure: Error {
  public var message: String
  public init(message: String) { self.message = message }
}

/// Runs a program found in `PATH` to its end, its output thrown away.
public func runProgram(_ arguments: String...) throws {
  try runProgram(arguments, showsErrors: false)
}

/// Runs a program found in `PATH` to its end.
/// - Parameter showsErrors: lets it write to the standard error of the tests.
public func runProgram(_ arguments: [String], showsErrors: Bool) throws {
  var actions = posix_spawn_file_actions_t()
  posix_spawn_file_actions_init(&actions)
  defer { posix_spawn_file_actions_destroy(&actions) }
  for descriptor: Int32 in showsErrors ? 0...1 : 0...2 {
    posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_RDWR, 0)
  }
  var pointers = arguments.map { strdup($0) }
  defer { for pointer in pointers { free(pointer) } }
  pointers.append(nil)
  var pid: pid_t = 0
  let code = posix_spawnp(&pid, arguments[0], &actions, nil, pointers, environ)
  guard code == 0 else {
    throw ProgramFailure(message: "\(arguments[0]): posix_spawn failed with \(code)")
  }
  var status: Int32 = 0
  while waitpid(pid, &status, 0) == -1 && errno == EINTR {}
  guard status == 0 else {
    throw ProgramFailure(message: "\(arguments.joined(separator: " ")): wait status \(status)")
  }
}
