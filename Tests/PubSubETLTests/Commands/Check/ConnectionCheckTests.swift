import GRPCCore
import PubSubAPI
import Testing

@testable import PubSubETL

@Suite("Check of the connection") struct ConnectionCheckTests {
  private static func error(_ code: RPCError.Code, _ word: String = "") -> PubSubError {
    PubSubError(
      RPCError(
        code: code, message: "m",
        metadata: ["error-code": .string("sfdc.platform.eventbus.grpc.\(word)")]),
      operation: "GetTopic")
  }

  @Test("Every topic that is refused is reported, with advice about its spelling")
  func reportsEveryTopic() async throws {
    var asked: [String] = []
    let failure = await #expect(throws: ConnectionCheck.Failure.self) {
      _ = try await ConnectionCheck.topics(["a", "b", "c", "d"]) { name in
        asked.append(name)
        switch name {
        case "a": throw Self.error(.notFound, "topic.not.found")
        case "c": throw RunFailure(.cannotSubscribe, "c: not allowed")
        default: break
        }
      }
    }
    #expect(asked == ["a", "b", "c", "d"])
    #expect(failure?.exitCode == .refused)
    #expect(failure?.message.contains("check the spelling") == true)
    #expect(failure?.otherMessages == ["c: not allowed"])
  }

  @Test("A service that does not answer is asked for no other topic")
  func stopsAtOutage() async throws {
    var asked: [String] = []
    let failure = await #expect(throws: ConnectionCheck.Failure.self) {
      _ = try await ConnectionCheck.topics(["a", "b", "c"]) { name in
        asked.append(name)
        throw name == "a" ? Self.error(.notFound, "topic.not.found") : Self.error(.unavailable)
      }
    }
    #expect(asked == ["a", "b"])
    #expect(failure?.otherMessages.count == 1)
  }

  @Test("Topics that may be subscribed to have a line each")
  func accepts() async throws {
    let lines = try await ConnectionCheck.topics(["a", "b"]) { _ in }
    #expect(lines == ["topic: a can be subscribed to", "topic: b can be subscribed to"])
  }
}
