import Foundation
import SimulatedOrg
import TestSupport
import Testing

@testable import PubSubSimulator

@Suite("The simulator's JWT bearer flow")
struct AssertionVerifierTests {
  @Test("PyJWT assertions are accepted if they are correct, and refused with any mistake")
  func judges() async throws {
    let files = try SigningKeyFiles()
    let now: Int64 = 1_900_000_000
    let audience = "https://login.salesforce.com"
    let (status, output) = try await PythonScript("../verify_assertions.py").run(
      ["forge", files.privateKey, audience, "app", "user@example.com", "\(now)"], [:])
    #expect(status == 0, "\(output)")
    let forged = try JSONDecoder().decode([String: String].self, from: Data(output.utf8))
    let expected = [
      "none": nil, "issuer": "client identifier invalid",
      "subject": "user hasn't approved this consumer", "audience": "audience is invalid",
      "no audience": "audience is invalid", "expired": "assertion expired",
      "too long": "invalid assertion", "no expiry": "invalid assertion",
      "HS256": "invalid assertion", "RS512": "invalid assertion",
      "no algorithm": "invalid assertion", "other claims": "invalid assertion",
      "no signature": "invalid assertion", "two parts": "invalid assertion",
      "no JSON": "invalid assertion", "empty": "invalid assertion",
    ]
    #expect(Set(forged.keys) == Set(expected.keys))
    // The certificate, and the bare key.
    for file in [files.certificate, files.publicKey] {
      let verifier = try AssertionVerifier(file: file)
      for (name, assertion) in forged {
        let refusal = verifier.refusal(
          of: assertion,
          expecting: .init(issuer: "app", subject: "user@example.com", audience: audience),
          at: now)
        #expect(refusal?.description == expected[name], "\(name)")
      }
    }
    let others = try SigningKeyFiles()
    let strange = try AssertionVerifier(file: others.certificate)
    #expect(
      strange.refusal(
        of: forged["none"] ?? "",
        expecting: .init(issuer: "app", subject: "user@example.com", audience: audience), at: now)
        == .malformed)
    // Their directories go with them.
    withExtendedLifetime((files, others)) {}
  }

  @Test("A file without a key is refused")
  func noKey() throws {
    let files = try SigningKeyFiles()
    for file in [files.privateKey, files.path("missing")] {
      #expect(throws: SimulatorError.self) { _ = try AssertionVerifier(file: file) }
    }
    withExtendedLifetime(files) {}
  }
}
