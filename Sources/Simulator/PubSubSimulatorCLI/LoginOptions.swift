import ArgumentParser
import SimulatedOrg

struct LoginOptions: ParsableArguments {
  private static let usual = SimulatedOrgConfiguration()

  @Option(help: "Username of the user whom the app may log in.")
  var username = Self.usual.username
  @Option(
    help:
      "PEM file of a certificate or public key; the JWT bearer flow accepts what its key has signed."
  )
  var jwtCertificate: String?
  @Option(help: "The audience that assertions have to name; default: the URL of the login.")
  var jwtAudience: String?
  @Option(help: "The refresh token of the app.")
  var refreshToken = Self.usual.refreshToken
  @Flag(help: "Every use replaces the refresh token; the old one is refused from then on.")
  var rotateRefreshTokens = false

  func set(_ org: inout SimulatedOrgConfiguration) {
    org.username = self.username
    org.jwtCertificateFile = self.jwtCertificate
    org.jwtAudience = self.jwtAudience
    org.refreshToken = self.refreshToken
    org.rotatesRefreshTokens = self.rotateRefreshTokens
  }
}
