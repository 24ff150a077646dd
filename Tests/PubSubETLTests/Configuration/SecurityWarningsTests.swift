import Glibc
import TestSupport
import Testing

@testable import PubSubETL

@Suite("Warnings about connections and secrets")
struct SecurityWarningsTests {
  private static func database(_ url: String) -> String {
    SamplePipeline.minimal.replacing(
      #"{ "type": "files", "directory": "out" }"#,
      with: #"{ "type": "postgres", "name": "warehouse", "url": "\#(url)" }"#)
  }

  @Test(
    "A warning names a database on another host without sslmode",
    arguments: [
      ("postgresql://etl@db.example/sales", "db.example"),
      ("postgresql://etl@db.example,db2.example/sales", "db.example,db2.example"),
      ("host=db.example dbname=sales", "db.example"),
      ("host=localhost hostaddr=192.0.2.7", "localhost"),
      ("postgresql://etl@localhost,192.0.2.7/sales", "localhost,192.0.2.7"),
    ])
  func unprotected(url: String, host: String) throws {
    let warnings = try SamplePipeline().load(Self.database(url)).securityWarnings
    #expect(warnings.count == 1)
    #expect(
      warnings.first?.hasPrefix("sink 'warehouse': the connection to \(host) sets no sslmode")
        == true)
    #expect(warnings.first?.contains("sslmode=verify-full") == true)
  }

  @Test(
    "An explicit sslmode or a local connection causes no warning",
    arguments: [
      "postgresql://etl@db.example/sales?sslmode=verify-full",
      "postgresql://etl@db.example/sales?sslmode=require",
      "host=db.example sslmode=disable", "postgresql://etl@localhost/sales",
      "postgresql://etl@127.0.0.1/sales", "postgresql://etl@[::1]/sales", "postgresql:///sales",
      "host=/run/postgresql dbname=sales", "postgresql://%2Frun%2Fpostgresql/sales",
    ])
  func protected(url: String) throws {
    #expect(try SamplePipeline().load(Self.database(url)).securityWarnings == [])
  }

  /// Where a secret may stand: the pipeline file, its org, the name of the file.
  struct Place: Sendable {
    var pipeline: String
    var org: String?
    var name: String
  }

  private static let auth =
    #"{ "auth": { "type": "client_credentials", "login_url": "https://acme.my.salesforce.com", "client_id": "id", "client_secret": "SECRET" } }"#

  private static let places = [
    Place(
      pipeline: SamplePipeline.minimal.replacing("${SECRET}", with: "${file:secret}"),
      name: "secret"),
    Place(
      pipeline: SamplePipeline.minimal.replacing("${SECRET}", with: "written out"),
      name: "pipeline.json"),
    Place(
      pipeline: Self.database("postgresql://etl:pw@localhost/sales"), name: "pipeline.json"),
    Place(
      pipeline: SamplePipeline.minimal.replacing(
        #"{ "type": "files", "directory": "out" }"#,
        with: #"{ "type": "postgres", "url": "${file:secret}" }"#), name: "secret"),
  ]

  @Test("A warning names a file with a secret that others can read", arguments: Self.places)
  func readableSecret(_ place: Place) throws {
    let sample = try SamplePipeline()
    try sample.write("postgresql://localhost/sales\n", to: "secret")
    let file = "\(sample.base)/\(place.name)"
    // Root's files may be read by a group: it has been chosen.
    let isRoot = geteuid() == 0
    for (mode, isOpen) in [
      (0o600, false), (0o400, false), (0o640, !isRoot), (0o604, true), (0o644, true),
    ] {
      try sample.write(place.pipeline)
      #expect(chmod(file, mode_t(mode)) == 0)
      let configuration = try PipelineConfiguration.load(
        file: "\(sample.base)/pipeline.json", environment: Environment(["SECRET": "s"]))
      let warnings = configuration.securityWarnings
      #expect(warnings.count == (isOpen ? 1 : 0), "\(String(mode, radix: 8)) \(warnings)")
      if isOpen {
        #expect(warnings.first?.hasPrefix("\(file) holds a secret") == true)
        #expect(warnings.first?.hasSuffix("chmod \(isRoot ? "640" : "600") \(file)") == true)
      }
    }
  }

  @Test("An org's file causes a warning unless its secret comes from the environment")
  func org() throws {
    let sample = try SamplePipeline()
    let start = try #require(SamplePipeline.minimal.firstRange(of: "\"org\": {"))
    let end = try #require(SamplePipeline.minimal.firstRange(of: "},\n  \"sinks\""))
    let pipeline = SamplePipeline.minimal.replacingCharacters(
      from: start.lowerBound, to: end.lowerBound, with: #""org": "org.json" "#)
    for (secret, count) in [("written out", 1), ("${SECRET}", 0)] {
      try sample.write(Self.auth.replacing("SECRET\" }", with: "\(secret)\" }"), to: "org.json")
      #expect(chmod("\(sample.base)/org.json", 0o644) == 0)
      let warnings = try sample.load(pipeline).securityWarnings
      #expect(warnings.count == count, "\(warnings)")
    }
  }

  @Test("A file without secrets may be readable by everybody")
  func harmless() throws {
    let sample = try SamplePipeline()
    #expect(chmod("\(sample.base)", 0o755) == 0)
    #expect(try sample.load().securityWarnings == [])
    try sample.write("opps", to: "name")
    let named = SamplePipeline.minimal.replacing("\"opps\"", with: "\"${file:name}\"")
    #expect(try sample.load(named).securityWarnings == [])
  }
}

extension String {
  fileprivate func replacingCharacters(
    from start: String.Index, to end: String.Index, with text: String
  ) -> String {
    self[..<start] + text + self[end...]
  }
}
