internal import RehearsalClock
internal import SimulatedOrg

/// The variables with which pipeline files find a simulator.
package struct SimulatorEnvironment: Sendable {
  package var variables: [(name: String, value: String)]

  package init(variables: [(name: String, value: String)]) { self.variables = variables }

  /// For `source`: a line `export NAME='value'` for each.
  package var shellText: String {
    self.variables.map { "export \($0.name)=\(Self.quoted($0.value))\n" }.joined()
  }

  /// By scalar: a quote with a combining character behind it is one `Character`, and not a quote.
  private static func quoted(_ value: String) -> String {
    var quoted = "'"
    for scalar in value.unicodeScalars {
      if scalar == "'" { quoted += "'\\'" }
      quoted.unicodeScalars.append(scalar)
    }
    return quoted + "'"
  }
}

extension SimulatorServer {
  /// - Parameters:
  ///   - addresses: as `start` returned them.
  ///   - clock: the address of the served clock, if there is one.
  package func environment(
    _ addresses: Addresses, clock: String? = nil
  ) -> SimulatorEnvironment {
    let configuration = self.configuration.org
    return SimulatorEnvironment(
      variables: [
        ("PUBSUB_ENDPOINT", addresses.endpoint), ("PUBSUB_CA_FILE", addresses.caFile ?? ""),
        ("SF_LOGIN_URL", addresses.loginURL), ("SF_CLIENT_ID", configuration.clientID),
        ("SF_CLIENT_SECRET", configuration.clientSecret), ("SF_USERNAME", configuration.username),
        ("SF_REFRESH_TOKEN", configuration.refreshToken),
        ("SF_ACCESS_TOKEN", self.issueToken()), ("SF_INSTANCE_URL", addresses.loginURL),
        ("SF_ORG_ID", self.organizationID), ("SIMULATOR_CONTROL_URL", addresses.controlURL),
        ("SIMULATOR_CONTROL_SECRET", addresses.controlSecret),
      ] + (clock.map { [(ServedClock.variable, $0)] } ?? []))
  }
}
