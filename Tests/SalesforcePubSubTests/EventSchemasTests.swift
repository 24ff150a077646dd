import Avro
import EventLoop
import PubSubAPI
import SchemaStore
import TestSupport
import Testing

@testable import SalesforcePubSub

@Suite("Schemas of events")
struct EventSchemasTests {
  private static let json =
    #"{"type":"record","name":"A__e","fields":[{"name":"City__c","type":["null","string"]}]}"#

  private static func id() throws -> String {
    try #require(try Schema(parsing: Array(Self.json.utf8)).serviceID)
  }

  private let asked = Lock<[String]>([])

  private func schemas(directory: String? = nil, json: String = Self.json) -> EventSchemas {
    EventSchemas(
      directory: directory, organizationID: { "00DXX0000000001AAA" },
      fetch: { [asked] id in
        asked.withLock { $0.append(id) }
        return json
      })
  }

  @Test("A schema is requested once, and its payloads are read as JSON")
  func once() async throws {
    let schemas = self.schemas()
    let event = Event(
      topic: "/event/A__e", id: "e1", replayID: [1], schemaID: "S",
      // Branch 1, a string of 4 bytes.
      payload: [0x02, 0x08] + Array("Köl".utf8), schemas: schemas)
    #expect(try await event.json() == #"{"City__c":"Köl"}"#)
    #expect(try await event.schema().json == Self.json)
    #expect(self.asked.withLock { $0 } == ["S"])
  }

  @Test("A schema in the directory is not requested again")
  func directory() async throws {
    let directory = try TemporaryDirectory()
    let id = try Self.id()
    for _ in 0..<2 {
      let schema = try await self.schemas(directory: directory.path + "/schemas").schema(id)
      #expect(schema.id == id)
    }
    #expect(self.asked.withLock { $0 } == [id])
  }

  @Test("A payload that does not fit its schema is an error of the decoder")
  func misfit() async throws {
    let schema = try await self.schemas().schema("S")
    let error = #expect(throws: AvroError.self) { try schema.json(of: [0x02, 0x08]) }
    #expect(error?.code == .truncated)
    #expect(error?.path == "City__c")
  }

  @Test(
    "An invalid schema ID is not requested",
    arguments: ["", "a b", "a\n", "ä", String(repeating: "a", count: 257)])
  func hostileIDs(id: String) async throws {
    let error = await #expect(throws: PubSubError.self) { try await self.schemas().schema(id) }
    #expect(error?.code == .malformedResponse)
    #expect(self.asked.withLock { $0 }.isEmpty)
  }

  @Test("Text that is not a schema is an error and is not stored")
  func noSchema() async throws {
    let schemas = self.schemas(json: "{}")
    for _ in 0..<2 {
      await #expect(throws: AvroError.self) { try await schemas.schema("S") }
    }
    #expect(self.asked.withLock { $0.count } == 2)
  }
}
