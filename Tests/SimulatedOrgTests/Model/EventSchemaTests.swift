import Foundation
import Testing

@testable import SimulatedOrg

@Suite("Schemas")
struct EventSchemaTests {
  @Test("Published schemas have their published IDs")
  func knownIDs() {
    #expect(EntityModel.orderEvent.versions[0].id == "_CADE3qaegX3ECEW0rlbYA")
    #expect(EntityModel.messageEvent.versions[0].id == "K98aAtiNFBjA-PJlcvaQ2g")
  }

  @Test("A published schema has the published text")
  func text() {
    #expect(
      EntityModel.messageEvent.versions[0].json
        == #"{"type":"record","name":"CM_Test_Event_Two__e","namespace":"com.sforce.eventbus","#
        + #""fields":[{"name":"CreatedDate","type":"long","doc":"CreatedDate:DateTime"},"#
        + #"{"name":"CreatedById","type":"string","doc":"CreatedBy:EntityId"},"#
        + #"{"name":"Message__c","type":["null","string"],"doc":"Data:Text:00NDp00000E0005","default":null}]}"#
    )
  }

  @Test("Shapes have the field counts of the public samples, header included")
  func counts() {
    #expect(EntityModel.account.versions[0].fields.count + 1 == 87)
    #expect(EntityModel.contact.versions[0].fields.count + 1 == 43)
    #expect(EntityModel.opportunity.versions[0].fields.count + 1 == 36)
    #expect(EntityModel.station.versions[0].fields.count + 1 == 25)
  }

  @Test("A nested type is defined once and then referred to by name")
  func namedReferences() {
    let json = EntityModel.account.versions[0].json
    #expect(json.components(separatedBy: #""name":"Address","fields""#).count == 2)
    #expect(json.contains(#"{"name":"ShippingAddress","type":["null","Address"]"#))
    #expect(json.contains(#"["null","string",{"type":"record","name":"Switchable_PersonName""#))
  }

  @Test("Versions have different IDs, and a field that a version lacks has no position in it")
  func versions() throws {
    for model in [EntityModel.account, .contact, .opportunity, .station, .orderEvent] {
      #expect(Set(model.versions.map(\.id)).count == model.versions.count)
    }
    let station = EntityModel.station
    let old = try #require(
      station.slots.firstIndex { $0.path == "LocalDegrees__c.XyzEncoded" })
    #expect(station.versions[0].positions[old]?.child == 2)
    #expect(station.versions[1].positions[old] == nil)
  }

  @Test("15-character record IDs get their check characters")
  func recordIDs() {
    let id = RecordID.lengthened(Array("001Dp00000JJkkH".utf8))
    #expect(String(decoding: id, as: UTF8.self) == "001Dp00000JJkkHIAT")
  }
}
