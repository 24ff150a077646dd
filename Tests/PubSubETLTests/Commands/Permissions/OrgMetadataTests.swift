import ArgumentParser
import JSON
import TestSupport
import Testing

@testable import PubSubETL

@Suite("Metadata for the org")
struct OrgMetadataTests {
  private let sample: SamplePipeline
  init() throws { self.sample = try SamplePipeline() }

  private func rights(_ sets: String...) throws -> PipelineRights {
    PipelineRights(try self.sample.load(sets: sets).source)
  }

  @Test(
    "Each topic gets the rights that it needs",
    arguments: [
      (#""/data/AccountChangeEvent""#, ["Account *"], ["ApiEnabled"], 0),
      (#""/data/OpportunityChangeEvent""#, ["Account", "Opportunity *"], ["ApiEnabled"], 1),
      (
        #"["/data/Station__ChangeEvent","/event/Order_Event__e"]"#,
        ["Order_Event__e", "Station__c *"], ["ApiEnabled"], 0
      ),
      (#""/data/TaskChangeEvent""#, [], ["ApiEnabled", "ViewAllData"], 1),
      (#""/data/UserChangeEvent""#, [], ["ApiEnabled", "ViewAllUsers"], 0),
      (#""/data/ChangeEvents""#, [], ["ApiEnabled"], 1),
      (#""/event/Orders__chn""#, [], ["ApiEnabled"], 1),
    ] as [(String, [String], [String], Int)])
  func rights(topic: String, objects: [String], permissions: [String], remarks: Int) throws {
    let rights = try self.rights("source.topic=\(topic)")
    #expect(rights.objects.map { $0.name + ($0.viewsAll ? " *" : "") } == objects)
    #expect(rights.userPermissions == permissions)
    #expect(rights.remarks.count == remarks, "\(rights.remarks)")
  }

  @Test("A pipeline that masks by classification may read the setup")
  func classification() throws {
    let masked = try self.sample.load(sets: [
      #"stages=[{"type":"mask","classified":{"compliance":["PII"]},"with":"drop"}]"#,
      #"dead_letter.payload=none"#,
    ])
    #expect(PipelineRights(masked).userPermissions == ["ApiEnabled", "ViewSetup"])
    #expect(PipelineRights(masked).remarks.contains { $0.contains("data classification") })
  }

  @Test("A channel gets the objects that the file lists")
  func channel() throws {
    let rights = try self.rights(
      "source.topic=/data/Sales__chn", #"source.snapshot={"objects":["Account","Contact"]}"#)
    #expect(rights.objects.map(\.name) == ["Account", "Contact"])
    #expect(rights.objects.map(\.viewsAll) == [true, true])
    #expect(rights.remarks.isEmpty)
  }

  @Test(
    "API names are valid in Salesforce",
    arguments: [
      ("opps", "pubsub_etl_opps"), ("a.b-c__d_", "pubsub_etl_a_b_c_d"), ("9", "pubsub_etl_9"),
      (String(repeating: "x", count: 64), "pubsub_etl_" + String(repeating: "x", count: 49)),
      (String(repeating: "x", count: 48) + "-y", "pubsub_etl_" + String(repeating: "x", count: 48)),
    ])
  func names(pipeline: String, name: String) { #expect(OrgMetadata.apiName(pipeline) == name) }

  @Test("Python's parser reads the original values from the files, whatever their characters")
  func parses() throws {
    let directory = try TemporaryDirectory()
    let contact = "a&b<c>\"d'\u{1}é]]>@example.com"
    let command = try PermissionsCommand.parse([
      "\(self.sample.base)/pipeline.json", "--output", "\(directory.path)/out", "--contact",
      contact,
    ])
    try self.sample.write(SamplePipeline.minimal.replacing("${SECRET}", with: "s3cret"))
    // Twice: files of an earlier call are replaced.
    try command.run()
    try command.run()
    let text = try PythonScript.run("read_metadata.py", ["\(directory.path)/out"])
    let files = try JSONValue(parsing: Array(text.utf8))
    let root = "force-app/main/default"
    #expect(
      Set((files.members ?? []).map(\.name)) == [
        "sfdx-project.json", "\(root)/permissionsets/pubsub_etl_opps.permissionset-meta.xml",
        "\(root)/externalClientApps/pubsub_etl_opps.eca-meta.xml",
        "\(root)/extlClntAppGlobalOauthSets/pubsub_etl_opps_glbloauth.ecaGlblOauth-meta.xml",
        "\(root)/extlClntAppOauthSettings/pubsub_etl_opps_oauth.ecaOauth-meta.xml",
      ])
    let app = files["\(root)/externalClientApps/pubsub_etl_opps.eca-meta.xml"]?[
      "ExternalClientApplication"]?.array?.first
    #expect(
      app?["contactEmail"]?.array?.first?.string == contact.replacing("\u{1}", with: "\u{FFFD}"))
    let set = try #require(
      files["\(root)/permissionsets/pubsub_etl_opps.permissionset-meta.xml"]?["PermissionSet"]?
        .array?.first)
    let objects = try #require(set["objectPermissions"]?.array)
    #expect(
      objects.compactMap { $0["object"]?.array?.first?.string } == ["Account", "Opportunity"])
    for object in objects {
      for right in ["allowCreate", "allowEdit", "allowDelete", "modifyAllRecords"] {
        #expect(object[right]?.array?.first?.string == "false")
      }
      #expect(object["allowRead"]?.array?.first?.string == "true")
    }
    #expect(!text.contains("s3cret"))
  }

  @Test("The JWT bearer flow gets its certificate and pre-authorizes the permission set")
  func jwtBearer() throws {
    let keys = try SigningKeyFiles()
    let certificate = String(decoding: try SigningKeyFiles.content(keys.certificate), as: UTF8.self)
    let auth =
      #"{"type":"jwt_bearer","login_url":"https://a.my.salesforce.com","client_id":"i","username":"u","private_key_file":"\#(keys.privateKey)"}"#
    let configuration = try self.sample.load(sets: ["source.org.auth=\(auth)"])
    let metadata = OrgMetadata(configuration, contact: "a@b", certificate: certificate)
    let text = metadata.files.map(\.text).joined()
    #expect(text.contains("<certificate>\(certificate)</certificate>"))
    #expect(
      text.contains("<commaSeparatedPermissionSet>pubsub_etl_opps</commaSeparatedPermissionSet>"))
    #expect(text.contains("AdminApprovedPreAuthorized"))
    #expect(!metadata.remarks.contains { $0.contains("--certificate") })
    #expect(
      OrgMetadata(configuration, contact: "a@b", certificate: nil).remarks
        .contains { $0.contains("--certificate") })
    // Its directory goes with it.
    withExtendedLifetime(keys) {}
  }

  @Test("A login that needs no app gets none")
  func noApp() throws {
    let configuration = try self.sample.load(
      sets: [#"source.org.auth={"type":"sf_cli","target_org":"prod"}"#])
    let metadata = OrgMetadata(configuration, contact: "a@b", certificate: nil)
    #expect(metadata.files.count == 2)
  }

  @Test("Text that is not a certificate is refused before anything is written")
  func noCertificate() throws {
    let keys = try SigningKeyFiles()
    try self.sample.write(SamplePipeline.minimal.replacing("${SECRET}", with: "s3cret"))
    let output = "\(self.sample.base)/out"
    let command = try PermissionsCommand.parse([
      "\(self.sample.base)/pipeline.json", "--output", output, "--certificate", keys.privateKey,
    ])
    #expect(throws: (any Error).self) { try command.run() }
    #expect(!FilePath.exists(output))
    withExtendedLifetime(keys) {}
  }
}
