import Testing

@testable import SalesforceAuth

@Suite("Hosts of Salesforce")
struct SalesforceHostTests {
  @Test(
    "The My Domain URL is found for what people copy from the browser",
    arguments: [
      ("https://acme.lightning.force.com", "acme"),
      ("https://acme.lightning.force.com/lightning/page/home?x=1#y", "acme"),
      ("acme.lightning.force.com/lightning/page/home", "acme"),
      ("HTTPS://ACME.Lightning.Force.com/", "acme"),
      ("https://acme1.lightning.force.com", "acme1"),
      (" https://acme.lightning.force.com. ", "acme"),
      ("http://acme.lightning.force.com:443", "acme"),
      ("https://acme--uat.sandbox.lightning.force.com", "acme--uat.sandbox"),
      ("https://acme--uat.lightning.force.com", "acme--uat.sandbox"),
      ("https://acme-dev-ed.develop.lightning.force.com", "acme-dev-ed.develop"),
      ("https://a-b-1234.scratch.lightning.force.com", "a-b-1234.scratch"),
      ("https://a-b.trailblaze.lightning.force.com", "a-b.trailblaze"),
      ("https://acme.my.salesforce-setup.com/lightning/setup/SetupOneHome/home", "acme"),
      ("https://acme--uat.sandbox.my.salesforce-setup.com", "acme--uat.sandbox"),
      ("https://acme-dev-ed.develop.my.salesforce-setup.com//", "acme-dev-ed.develop"),
      ("https://acme--c.vf.force.com/apex/Page", "acme"),
      ("https://acme--uat--c.sandbox.vf.force.com", "acme--uat.sandbox"),
      ("https://acme--c.visualforce.com", "acme"),
      ("https://acme--uat--c.visualforce.com", "acme--uat.sandbox"),
      ("https://acme--c.na123.visual.force.com", "acme"),
      ("https://acme--uat--c.cs12.content.force.com", "acme--uat.sandbox"),
      ("https://acme.file.force.com", "acme"),
      ("https://acme--uat.sandbox.file.force.com", "acme--uat.sandbox"),
      ("https://acme.my.site.com/portal/s", "acme"),
      ("https://acme--uat.sandbox.my.site.com", "acme--uat.sandbox"),
      ("https://acme.my.salesforce-sites.com", "acme"),
      ("https://acme.na45.my.salesforce.com", "acme"),
      ("https://acme--uat.cs45.my.salesforce.com", "acme--uat.sandbox"),
    ])
  func copied(text: String, name: String) throws {
    let advice = try #require(SalesforceHost.loginAdvice(for: text))
    #expect(advice.hasSuffix("; use https://\(name).my.salesforce.com"), "\(advice)")
    #expect(SalesforceHost.instanceAdvice(for: text) != nil)
  }

  @Test(
    "A host without the org's name leads to Setup",
    arguments: [
      "https://setup.salesforce.com", "https://na123.salesforce.com",
      "https://cs45.salesforce.com/",
      "https://eu12.lightning.force.com", "https://c.na1.visual.force.com",
      "https://acme.force.com", "https://www.salesforce.com", "https://api.pubsub.salesforce.com",
      "https://help.salesforce.com/s/", "salesforce.com",
    ])
  func nameless(text: String) throws {
    let advice = try #require(SalesforceHost.loginAdvice(for: text))
    #expect(advice.contains("https://<name>.my.salesforce.com (Setup > My Domain)"), "\(advice)")
    #expect(SalesforceHost.instanceAdvice(for: text) == nil)
  }

  @Test("A path after a host that takes logins is named") func path() {
    for text in ["https://acme.my.salesforce.com/home", "acme.my.salesforce.com"] {
      #expect(
        SalesforceHost.loginAdvice(for: text)
          == "expected only scheme and host: https://acme.my.salesforce.com")
    }
  }

  @Test(
    "A host that takes logins, and one of nobody's, is left alone",
    arguments: [
      "https://login.salesforce.com", "https://test.salesforce.com/",
      "https://acme.my.salesforce.com", "https://acme.my.salesforce.com/",
      "https://acme.my.salesforce.com:443", "https://acme--uat.sandbox.my.salesforce.com",
      "https://acme-dev-ed.develop.my.salesforce.com", "http://127.0.0.1:8080", "https://localhost",
      "https://login.example.com", "https://evilsalesforce.com", "not a url", "",
    ])
  func accepted(text: String) { #expect(SalesforceHost.loginAdvice(for: text) == nil) }
}
