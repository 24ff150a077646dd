import Testing

@testable import SimulatedOrg

@Suite("Bitmaps of changed fields")
struct FieldBitmapTests {
  @Test(
    "An index set is written as whole bytes of upper-case hex, highest first",
    arguments: [
      ([0], "0x01"), ([7], "0x80"), ([8], "0x0100"), ([15, 16], "0x018000"),
      ([63], "0x8000000000000000"), ([64], "0x010000000000000000"),
      ([86], "0x4000000000000000000000"), ([23, 68], "0x100000000000800000"),
      ([6, 24, 26], "0x05000040"), ([19, 20, 21, 22, 23, 12, 27], "0x08F81000"),
    ])
  func hex(indexes: [Int], text: String) {
    #expect(String(decoding: FieldBitmap.text(of: indexes), as: UTF8.self) == text)
  }

  /// Paths of fields → entries, in the published Opportunity and Account shapes.
  private func entries(_ model: EntityModel, _ paths: [String]) throws -> [String] {
    let positions = try paths.map { path in
      let slot = try #require(model.slots.firstIndex { $0.path == path })
      return try #require(model.versions[0].positions[slot])
    }
    return FieldBitmap.entries(of: positions).map { String(decoding: $0, as: UTF8.self) }
  }

  @Test("Examples of real events are reproduced digit by digit")
  func examples() throws {
    #expect(
      try self.entries(.opportunity, ["StageName", "IsClosed", "LastModifiedDate"])
        == ["0x01004020"])
    #expect(
      try self.entries(.account, ["LastModifiedDate", "ShippingAddress.Street"])
        == ["0x800000", "6-0x01"])
    #expect(
      try self.entries(.account, ["ShippingAddress.Latitude", "ShippingAddress.Longitude"])
        == ["6-0x0180"])
    #expect(try self.entries(.account, ["Name.FirstName", "Name.LastName"]) == ["1-0x06"])
    #expect(
      try self.entries(.contact, ["Phone", "LastModifiedDate", "Name.FirstName"])
        == ["0x04000040", "3-0x02"])
    #expect(
      try self.entries(
        .contact,
        [
          "MailingAddress.Country", "LastModifiedDate", "MailingAddress.City",
          "MailingAddress.PostalCode",
        ]) == ["0x04000000", "5-0x1A"])
  }

  @Test("Several compound fields follow in the order of their indexes")
  func nestedOrder() throws {
    #expect(
      try self.entries(.account, ["ShippingAddress.City", "BillingAddress.City"])
        == ["5-0x02", "6-0x02"])
    #expect(try self.entries(.account, []) == [])
  }
}
