package import Clocks
import HTTPClient

/// Gives a run its clock.
package typealias ClockOfRun = @Sendable (OrgPlaces) throws(ClockRefusal) -> ProcessClock

/// The places of an org's servers: on this machine, as a simulator's are, or elsewhere.
package struct OrgPlaces: Sendable {
  package var isEndpointLocal: Bool
  package var isLoginLocal: Bool

  init(_ org: OrgConfiguration) {
    self.isEndpointLocal = org.endpoint.isLoopback
    self.isLoginLocal = org.auth.server?.isLoopback == true
  }
}

/// No clock is given for this org.
package struct ClockRefusal: Error {
  package var message: String

  package init(message: String) { self.message = message }
}
