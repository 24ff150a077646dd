import Avro
import FoundationEssentials
import GRPCCore
import Pipeline
import PubSubAPI
import PubSubMessages
import SwiftProtobuf
import TestSupport
import Testing

@testable import PubSubSource

/// Events that are decoded together.
@Suite("Decoding consecutive events") struct ConsecutiveEventsTests {
  private let source = PubSubSource<ScriptedTransport>(
    topics: [SourceTopic(name: "/event/A__e", isChannel: false, start: .earliest)],
    client: PubSubClient(GRPCClient(transport: ScriptedTransport { _ in })),
    credentials: ScriptedCredentials(), options: PubSubSourceOptions())

  private func schema(_ id: String) throws -> ResolvedSchema {
    let text = #"{"type":"record","name":"A__e","fields":[{"name":"N__c","type":"long"}]}"#
    return ResolvedSchema(
      Array(id.utf8), .success(try Schema(parsing: Array(text.utf8))), byteCount: text.utf8.count)
  }

  /// Events with the numbers 0 to 5. The one with the number 3 is different.
  private func response(
    eventID: String = "e3", schemaID: String = "one", payload: [UInt8] = [6]
  ) throws -> PubSubResponse {
    let message = Eventbus_V1_FetchResponse.with {
      $0.events = (0..<6).map { number in
        .with {
          $0.replayID = Data([UInt8(number + 1)])
          $0.event.id = number == 3 ? eventID : "e\(number)"
          $0.event.schemaID = number == 3 ? schemaID : "one"
          $0.event.payload = Data(number == 3 ? payload : [UInt8(number * 2)])
        }
      }
    }
    let view = try FetchResponseView(parsing: message.serializedBytes() as [UInt8])
    var schemas = ResponseSchemas()
    for event in view.events where !view.with(event.schemaID, { schemas.takeKnown($0) }) {
      schemas.take(try self.schema(view.string(event.schemaID)))
    }
    return PubSubResponse(view: view, schemas: schemas)
  }

  private func ids(_ batch: RecordBatch) -> [String] {
    batch.events.map { String(decoding: batch.bytes($0.eventID), as: UTF8.self) }
  }

  @Test("They become the rows that they become one by one")
  func equal() throws {
    let response = try self.response()
    let layout = try self.source.layout(ofEvent: 0, of: response, topic: 0)
    let together = RecordBatch(layout: layout)
    self.source.decode(consecutive: 0..<6, of: response, topic: 0, into: together)
    let alone = RecordBatch(layout: layout)
    for index in 0..<6 {
      try self.source.decode(event: index, of: response, topic: 0, into: alone)
    }
    #expect(self.ids(together) == (0..<6).map { "e\($0)" })
    #expect(self.ids(together) == self.ids(alone))
    for row in 0..<6 {
      #expect(together.row(row).cells[MetadataSlot.count] == UInt64(row))
      #expect(alone.row(row).cells[MetadataSlot.count] == UInt64(row))
    }
  }

  @Test("An event that needs a decision ends them and leaves nothing")
  func ends() throws {
    let long = String(repeating: "x", count: 1025)
    for response in [
      try self.response(eventID: long), try self.response(eventID: "a\0"),
      try self.response(schemaID: "other"), try self.response(payload: [1, 1]),
    ] {
      let batch = RecordBatch(
        layout: try self.source.layout(ofEvent: 0, of: response, topic: 0))
      self.source.decode(consecutive: 1..<6, of: response, topic: 0, into: batch)
      #expect(self.ids(batch) == ["e1", "e2"])
      #expect(batch.rowCount == 2)
      self.source.decode(consecutive: 3..<6, of: response, topic: 0, into: batch)
      #expect(batch.events.count == 2)
    }
  }
}
