import GRPCCore
import Testing

@testable import PubSubAPI

@Suite("Pub/Sub errors") struct PubSubErrorTests {
  static let prefix = "sfdc.platform.eventbus.grpc."

  @Test("The error-code trailer names the code")
  func trailer() {
    let error = PubSubError(
      RPCError(
        code: .notFound, message: "The specified topic cannot be found. rpcId: 0b1c-22",
        metadata: ["error-code": .string(Self.prefix + "topic.not.found")]),
      operation: "GetTopic /data/NoChangeEvent")
    #expect(error.serviceCode == .topicNotFound)
    #expect(error.status == .notFound)
    #expect(error.rpcID == "0b1c-22")
    #expect(error.message.hasPrefix("GetTopic /data/NoChangeEvent: "))
    #expect(error.message.contains("topic.not.found"))
  }

  @Test("An unknown error code is kept")
  func unknownCode() {
    let error = PubSubError(
      RPCError(
        code: .internalError, message: "m", metadata: ["error-code": .string("some.new.code")]),
      operation: "Subscribe")
    #expect(error.serviceCode?.rawValue == "some.new.code")
  }

  @Test(
    "The message decides if the trailer is missing",
    arguments: [
      ("bla sfdc.platform.eventbus.grpc.service.auth.error. rpcId: 1", ServiceErrorCode.authError),
      ("The Replay ID validation failed. Ensure that ...", .replayIDCorrupted),
      ("You have exceeded the event delivery limit for your org.", .limitExceeded),
      ("The schema ID can't be blank.", .schemaValidationFailed),
      ("An authentication exception occurred. rpcId: x", .authError),
      ("The service is unavailable. Try again later", .serviceUnavailable),
    ])
  func sentence(message: String, code: ServiceErrorCode) {
    let error = PubSubError(RPCError(code: .unknown, message: message), operation: "Subscribe")
    #expect(error.serviceCode == code)
  }

  @Test("An empty trailer counts as missing")
  func emptyTrailer() {
    let error = PubSubError(
      RPCError(code: .unavailable, message: "io exception", metadata: ["error-code": ""]),
      operation: "Subscribe")
    #expect(error.serviceCode == nil)
    #expect(error.rpcID == nil)
  }

  @Test("The RPC ID may come in a trailer")
  func rpcIDTrailer() {
    let error = PubSubError(
      RPCError(code: .unavailable, message: "down", metadata: ["x-rpc-id": "77"]),
      operation: "Subscribe")
    #expect(error.rpcID == "77")
  }

  @Test("Credentials print without the token")
  func redacted() {
    let credentials = Credentials(
      accessToken: "00Dsecret", instanceURL: "https://a.example", tenantID: "00D")
    var dumped = ""
    dump(credentials, to: &dumped)
    for text in [
      "\(credentials)", String(reflecting: credentials), dumped, "\([credentials])",
      "\(Optional(credentials) as Any)",
    ] {
      #expect(!text.contains("secret"))
      #expect(text.contains("a.example"))
    }
  }
}
