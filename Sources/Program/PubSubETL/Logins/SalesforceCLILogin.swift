import HTTPClient
import JSON
import SalesforceAuth

/// An org that the Salesforce CLI knows.
struct SalesforceCLILogin: Login {
  static let type = "sf_cli"
  static let schemaDescription = "An org that the Salesforce CLI is logged in to."

  var program = "sf"
  var targetOrg = ""

  var server: ServiceAddress? { nil }
  var summary: String { "\(self.program), for its org \(self.targetOrg)" }

  func flow(_ context: LoginContext) -> any AccessTokenFlow {
    SalesforceCLIFlow(
      program: self.program, targetOrg: self.targetOrg, organizationID: context.organizationID,
      clock: context.client.clock)
  }

  static var keys: [Key<Self>] {
    [
      .required(
        "target_org", \.targetOrg,
        .text.checked {
          SalesforceCLIFlow.isTargetOrg($0)
            ? nil
            : "expected an alias or username of the Salesforce CLI: no blanks, not beginning with '-'"
        }, "Alias or username, as the CLI knows it.", example: "my-sandbox"),
      .key(
        "program", \.program,
        // A bare name is looked up in PATH; anything else is a path like all others.
        .text.map(write: { .string($0) }) { reader, name, text in
          text.utf8.contains(UInt8(ascii: "/")) ? Kind<String>.path.read(reader, name, false) : text
        }, "Name or path of the program.", example: "/opt/sf/bin/sf"),
    ]
  }
}
