import EventLoop
import Glibc
import HTTPClient

/// Lets a simulator on this machine serve the time of a run (`pubsub-simulator serve --clock`, `rehearse`).
///
/// A clock controlled by others could make a run believe that its position had expired or that its
/// lease was still valid. So it is accepted only if no real org can be reached: the clock and the
/// org's endpoints have to be loopback addresses.
enum RehearsalClock {
  /// - Parameter address: the clock's address; nil, as always outside rehearsals, changes nothing.
  /// - Returns: why the clock is refused; nil if the run may begin.
  static func join(
    _ address: String? = getenv(ServedClock.variable).map { String(cString: $0) },
    for org: OrgConfiguration
  ) -> String? {
    guard let address, !address.isEmpty else { return nil }
    if let refusal = Self.refusal(of: address, for: org) { return refusal }
    guard let port = ServedClock.port(of: address) else { return nil }
    do throws(ServedClock.Failure) {
      try ServedClock.join(port: port)
      return nil
    } catch {
      return "\(ServedClock.variable): \(error)\(Self.remedy)"
    }
  }

  private static let remedy = "; unset \(ServedClock.variable)"

  static func refusal(of address: String, for org: OrgConfiguration) -> String? {
    guard ServedClock.port(of: address) != nil else {
      return "\(ServedClock.variable): expected 127.0.0.1:PORT, the clock of a simulator"
        + Self.remedy
    }
    guard org.endpoint.isLoopback else {
      return "\(ServedClock.variable) is for rehearsals, and source.org.endpoint is not a loopback "
        + "address" + Self.remedy
    }
    guard let server = org.auth.server, server.isLoopback else {
      return
        "\(ServedClock.variable) is for rehearsals, and the login of source.org.auth is not at "
        + "a loopback address" + Self.remedy
    }
    return nil
  }
}
