import Cryptography
import Testing

@testable import ObjectStore

@Suite("Signatures of requests")
struct RequestSignerTests {
  typealias Headers = [(name: String, value: String)]

  private static let empty = SHA256.hash(of: []).hex

  /// The examples of "Signature Calculations for the Authorization Header: Transferring Payload in a
  /// Single Chunk" in the Amazon S3 API reference.
  private struct Example: Sendable, CustomTestStringConvertible {
    var method: String
    var key = ""
    var query: [(name: String, value: String)] = []
    var headers: [(name: String, value: String)] = []
    var content = ""
    var canonicalHash: String
    var signature: String

    var testDescription: String { "\(self.method) \(self.key) \(self.query)" }
  }

  private static let examples = [
    Example(
      method: "GET", key: "test.txt", headers: [("Range", "bytes=0-9")],
      canonicalHash: "7344ae5b7ee6c3e7e6b0fe0640412a37625d1fbfff95c48bbb2dc43964946972",
      signature: "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
    Example(
      method: "PUT", key: "test$file.text",
      headers: [
        ("Date", "Fri, 24 May 2013 00:00:00 GMT"), ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
      ], content: "Welcome to Amazon S3.",
      canonicalHash: "9e0e90d9c76de8fa5b200d8c849cd5b8dc7a3be3951ddb7f6a76b4158342019d",
      signature: "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
    Example(
      method: "GET", query: [("lifecycle", "")],
      canonicalHash: "9766c798316ff2757b517bc739a67f6213b4ab36dd5da2f94eaebf79c77395ca",
      signature: "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
    Example(
      method: "GET", query: [("prefix", "J"), ("max-keys", "2")],
      canonicalHash: "df57d21db20da04d7fa30298dd4488ba3a2b47ca3a489c74750e0f1e7df1b9b7",
      signature: "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
  ]

  @Test("The examples of Amazon S3 have the published signatures", arguments: Self.examples)
  private func amazonS3(_ example: Example) throws {
    let signer = RequestSigner(
      credentials: StoreCredentials(
        accessKeyID: "AKIAIOSFODNN7EXAMPLE",
        secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"), region: "us-east-1",
      service: "s3")
    let address = try BucketAddress(bucket: "examplebucket")
    let time = RequestSigner.time(milliseconds: 1_369_353_600_000)
    #expect(time == "20130524T000000Z")
    let hash = SHA256.hash(of: Array(example.content.utf8)).hex
    let signature = signer.sign(
      example.method, path: address.path(of: example.key),
      query: RequestSigner.canonicalQuery(example.query),
      headers: example.headers + [
        ("host", "examplebucket.s3.amazonaws.com"), ("x-amz-content-sha256", hash),
        ("x-amz-date", time),
      ], payloadHash: hash, time: time)
    #expect(
      SHA256.hash(of: Array(signature.canonicalRequest.utf8)).hex == example.canonicalHash)
    #expect(signature.authorization.hasSuffix("Signature=\(example.signature)"))
  }

  /// Cases of the aws-sig-v4-test-suite that concern what Amazon S3 has, too. Its path is not
  /// normalised.
  private struct Case: Sendable, CustomTestStringConvertible {
    var name: String
    var method = "GET"
    var path = "/"
    var query: [(name: String, value: String)] = []
    var headers: [(name: String, value: String)] = []
    var token: String?
    var content = ""
    var signedHeaders = "host;x-amz-date"
    var signature: String

    var testDescription: String { self.name }
  }

  private static let vanilla = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
  private static let cases = [
    Case(name: "get-vanilla", signature: vanilla),
    Case(
      name: "get-unreserved",
      path: "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
      signature: "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"),
    Case(
      name: "get-vanilla-query-order-key-case",
      query: [("Param2", "value2"), ("Param1", "value1")],
      signature: "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"),
    Case(
      name: "get-vanilla-query-order-value",
      query: [("Param1", "value2"), ("Param1", "value1")],
      signature: "5772eed61e12b33fae39ee5e7012498b51d56abc0abb7c60486157bd471c4694"),
    Case(
      name: "get-vanilla-utf8-query", query: [("\u{1234}", "bar")],
      signature: "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"),
    Case(
      name: "get-header-key-duplicate", headers: [("My-Header1", "value2,value2,value1")],
      signedHeaders: "host;my-header1;x-amz-date",
      signature: "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea"),
    Case(
      name: "get-header-value-order", headers: [("My-Header1", "value4,value1,value3,value2")],
      signedHeaders: "host;my-header1;x-amz-date",
      signature: "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01"),
    Case(
      name: "get-header-value-trim",
      headers: [("My-Header1", " value1"), ("My-Header2", " \"a   b   c\"")],
      signedHeaders: "host;my-header1;my-header2;x-amz-date",
      signature: "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"),
    Case(
      name: "post-x-www-form-urlencoded", method: "POST",
      headers: [("Content-Type", "application/x-www-form-urlencoded")], content: "Param1=value1",
      signedHeaders: "content-type;host;x-amz-date",
      signature: "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"),
    Case(
      name: "get-vanilla-with-session-token",
      token: "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267",
      signedHeaders: "host;x-amz-date;x-amz-security-token",
      signature: "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8"),
  ]

  @Test("The cases of the published suite have its signatures", arguments: Self.cases)
  private func suite(_ test: Case) {
    let signer = RequestSigner(
      credentials: StoreCredentials(
        accessKeyID: "AKIDEXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
      region: "us-east-1", service: "service")
    let time = "20150830T123600Z"
    let token = test.token.map { [(name: "x-amz-security-token", value: $0)] } ?? []
    let signature = signer.sign(
      test.method, path: RequestSigner.encodedPath(test.path),
      query: RequestSigner.canonicalQuery(test.query),
      headers: [("Host", "example.amazonaws.com"), ("X-Amz-Date", time)] + test.headers + token,
      payloadHash: SHA256.hash(of: Array(test.content.utf8)).hex, time: time)
    #expect(
      signature.authorization
        == "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
        + "SignedHeaders=\(test.signedHeaders), Signature=\(test.signature)")
  }

  @Test("The string to sign of get-vanilla is the published one") func stringToSign() {
    let signer = RequestSigner(
      credentials: StoreCredentials(accessKeyID: "any", secretAccessKey: "any"),
      region: "us-east-1", service: "service")
    let signature = signer.sign(
      "GET", path: "/", query: "",
      headers: [("host", "example.amazonaws.com"), ("x-amz-date", "20150830T123600Z")],
      payloadHash: Self.empty, time: "20150830T123600Z")
    #expect(
      signature.stringToSign == """
        AWS4-HMAC-SHA256
        20150830T123600Z
        20150830/us-east-1/service/aws4_request
        bb579772317eb040ac9ed261061d46c1f17a8133879d6129b6e1c25292927e63
        """)
  }

  @Test("A key is encoded once, byte by byte") func path() {
    #expect(
      RequestSigner.encodedPath("/Opportunity/commit_date=2026-01-01/a b+c@d(1)*~é%41.zst")
        == "/Opportunity/commit_date%3D2026-01-01/a%20b%2Bc%40d%281%29%2A~%C3%A9%2541.zst")
  }

  @Test("Credentials print without their secrets") func secrets() {
    let credentials = StoreCredentials(
      accessKeyID: "AKID", secretAccessKey: "hidden-1", sessionToken: "hidden-2")
    var dumped = ""
    dump(credentials, to: &dumped)
    for text in ["\(credentials)", String(reflecting: credentials), dumped] {
      #expect(text.contains("AKID"))
      #expect(!text.contains("hidden"))
    }
  }
}
