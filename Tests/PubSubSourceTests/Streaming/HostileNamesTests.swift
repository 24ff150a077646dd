import Clocks
import FoundationEssentials
import GRPCCore
import Pipeline
import PubSubAPI
import PubSubMessages
import SchemaStore
import SwiftProtobuf
import TestSupport
import Testing

@testable import PubSubSource

/// Event IDs and schema IDs that publishers may choose as they like.
@Suite("Hostile IDs of events and schemas")
struct HostileNamesTests {
  private func source() -> PubSubSource<ScriptedTransport> {
    PubSubSource(
      topics: [SourceTopic(name: "/event/A__e", isChannel: false, start: .earliest)],
      client: PubSubClient(GRPCClient(transport: ScriptedTransport { _ in })),
      credentials: ScriptedCredentials(), options: PubSubSourceOptions())
  }

  private func response(eventID: String, schemaID: String) throws -> PubSubResponse {
    let message = Eventbus_V1_FetchResponse.with {
      $0.events = [
        .with {
          $0.replayID = Data([1])
          $0.event.id = eventID
          $0.event.schemaID = schemaID
          $0.event.payload = Data([7, 7])
        }
      ]
    }
    var schemas = ResponseSchemas()
    schemas.takeInvalid()
    return PubSubResponse(
      view: try FetchResponseView(parsing: message.serializedBytes() as [UInt8]),
      schemas: schemas)
  }

  @Test(
    "An event with an oversized ID becomes a dead letter under a generated name",
    arguments: [
      String(repeating: "x", count: 1025), String(repeating: "é", count: 45_000), "a\0b",
      "\u{1B}[2J\0",
    ])
  func eventIDs(id: String) throws {
    let source = self.source()
    let response = try self.response(eventID: id, schemaID: "")
    let error = #expect(throws: UndecodableEvent.self) {
      try source.layout(ofEvent: 0, of: response, topic: 0)
    }
    #expect(error?.reason.contains("the event ID has \(id.utf8.count) bytes") == true)
    let raw = source.rawEvent(0, of: response)
    #expect(raw.eventID.count < 400)
    let text = try #require(String(validating: raw.eventID, as: UTF8.self))
    #expect(text.unicodeScalars.allSatisfy { $0.value >= 0x20 })
    #expect(text.unicodeScalars.first == id.unicodeScalars.first || id.hasPrefix("\u{1B}"))
    let other = source.rawEvent(0, of: try self.response(eventID: id + "y", schemaID: ""))
    #expect(other.eventID != raw.eventID)
  }

  @Test(
    "An event ID of up to 1,024 bytes is accepted unchanged",
    arguments: [
      "", "e", String(repeating: "é", count: 512), "\u{2028}\"\\\u{7F}\n",
    ])
  func acceptedEventIDs(id: String) throws {
    let source = self.source()
    let response = try self.response(eventID: id, schemaID: "")
    let error = #expect(throws: UndecodableEvent.self) {
      try source.layout(ofEvent: 0, of: response, topic: 0)
    }
    #expect(error?.reason == "the event names no schema")
    #expect(source.rawEvent(0, of: response).eventID == Array(id.utf8))
  }

  @Test(
    "An invalid schema ID is not requested",
    arguments: [
      String(repeating: "x", count: 257), "a b", "\u{1B}[2J", "a\0", "schéma", "a\n",
    ])
  func schemaIDs(id: String) async throws {
    let source = self.source()
    let response = try self.response(eventID: "e", schemaID: id)
    // Nobody would answer.
    let options = PubSubSourceOptions()
    let resolver = SchemaResolver(
      library: SchemaLibrary(maxByteCount: 1, onUnexpectedID: { _ in }),
      fetcher: SchemaFetcher(
        client: PubSubClient(GRPCClient(transport: ScriptedTransport { _ in })),
        credentials: ScriptedCredentials(), options: options,
        clock: StreamClock(ProcessClock())), maxByteCount: 1)
    let resolution = try await resolver.resolve(
      response.view, onFetch: { Issue.record("a schema is fetched") }, onRetry: { _, _ in })
    #expect(resolution.schemas.distinct.isEmpty)
    let error = #expect(throws: UndecodableEvent.self) {
      try source.layout(ofEvent: 0, of: response, topic: 0)
    }
    #expect(error?.reason.contains("schema ID of \(id.utf8.count) bytes is not valid") == true)
    let raw = source.rawEvent(0, of: response)
    #expect(raw.schemaID.utf8.count < 400)
    #expect(raw.schemaID.unicodeScalars.allSatisfy { $0.value >= 0x20 })
    #expect(raw.payload == [7, 7])
  }
}
