/// The audience that Salesforce expects in an assertion: by the kind of org, not by the host that the
/// assertion is sent to.
package enum JWTAudience {
  package static let production = "https://login.salesforce.com"
  package static let sandbox = "https://test.salesforce.com"

  /// - Parameters:
  ///   - loginURL: origin that the assertion is sent to, without a slash at its end.
  ///   - host: its host, in lower case.
  /// - Returns: the audience of sandboxes and scratch orgs, or that of all other orgs, for hosts of
  ///   Salesforce; for any other host, such as that of an Experience Cloud site, the URL itself.
  package static func audience(loginURL: String, host: String) -> String {
    switch host {
    case "login.salesforce.com": return Self.production
    case "test.salesforce.com": return Self.sandbox
    default: break
    }
    guard host.hasSuffix(".my.salesforce.com") else { return loginURL }
    let labels = host.split(separator: ".")
    // `acme--uat.sandbox.my.salesforce.com`; `acme--uat.my.salesforce.com` in orgs without enhanced
    // domains. A My Domain name has no two hyphens in a row.
    let isSandbox =
      labels.count > 4 && ["sandbox", "scratch"].contains(labels[labels.count - 4])
      || labels.count == 4 && labels[0].contains("--")
    return isSandbox ? Self.sandbox : Self.production
  }
}
