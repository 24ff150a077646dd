/// Who may use the control interface: programs that know its secret.
///
/// Other users of the machine can reach the port, and so can web pages that the user opens. A page cannot read the
/// secret; the checks of `Host` and `Origin` refuse it before that, also when its host name leads to
/// 127.0.0.1 (DNS rebinding).
struct ControlAccess: Sendable {
  /// The request header with the secret, in lower case.
  static let header = "x-simulator-secret"
  private static let hosts: Set<String> = ["127.0.0.1", "localhost"]

  let secret: String

  /// 128 random bits.
  static func makeSecret() -> String {
    var random = SystemRandomNumberGenerator()
    return (0..<2).map { _ in
      let digits = String(random.next() as UInt64, radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }.joined()
  }

  /// Why the request is refused; nil if it is not.
  func refusal(of request: HTTPRequest) -> String? {
    let host = request.headers["host"] ?? ""
    guard Self.hosts.contains(String(host.prefix { $0 != ":" })) else {
      return "the Host header must be 127.0.0.1 or localhost"
    }
    if request.headers["origin"] != nil {
      return "web pages must not use the control interface; send no Origin header"
    }
    guard let given = request.headers[Self.header] else {
      return "the header X-Simulator-Secret is missing; its value is SIMULATOR_CONTROL_SECRET, "
        + "in the file of --env and in the line 'ready'"
    }
    guard Self.isEqual(given, self.secret) else {
      return "the value of the header X-Simulator-Secret is wrong; every start makes a new one"
    }
    return nil
  }

  /// Takes equally long wherever the texts differ.
  private static func isEqual(_ left: String, _ right: String) -> Bool {
    guard left.utf8.count == right.utf8.count else { return false }
    return zip(left.utf8, right.utf8).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
  }
}
