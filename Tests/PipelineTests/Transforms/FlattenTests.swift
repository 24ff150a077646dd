import JSON
import Pipeline
import Testing

@Suite("Flatten")
struct FlattenTests {
  @Test(
    "Children are named by the configured style",
    arguments: [
      ("BillingAddress", "City", "BillingAddress_City", "BillingCity"),
      ("MailingAddress", "Latitude", "MailingAddress_Latitude", "MailingLatitude"),
      ("Address", "City", "Address_City", "City"),
      ("Address", "GeocodeAccuracy", "Address_GeocodeAccuracy", "GeocodeAccuracy"),
      ("Name", "FirstName", "Name_FirstName", "FirstName"),
      ("Name", "Salutation", "Name_Salutation", "Salutation"),
      ("Loc__c", "Latitude", "Loc__c_Latitude", "Loc__Latitude__s"),
      ("ns__Loc__c", "Longitude", "ns__Loc__c_Longitude", "ns__Loc__Longitude__s"),
      ("Home__c", "City", "Home__c_City", "Home__City__s"),
      (
        "Shipping_Address__c", "Street", "Shipping_Address__c_Street", "Shipping_Address__Street__s"
      ),
      ("LastKnownLocation", "Latitude", "LastKnownLocation_Latitude", "LastKnownLatitude"),
      ("Loc__pc", "Latitude", "Loc__pc_Latitude", "Loc__pc_Latitude"),
      ("Details", "Part", "Details_Part", "Details_Part"),
    ])
  func naming(parent: String, child: String, path: String, sobject: String) throws {
    let input = RecordLayout.of([Column(record: parent, 1, children: [child])])
    #expect(try Flatten(naming: .path).layout(for: input).names == [path])
    #expect(try Flatten(naming: .sobject).layout(for: input).names == [sobject])
  }

  @Test("Children take the place of their record and keep slots, types and paths")
  func place() throws {
    let input = RecordLayout.of([
      Column(metadata: "_record_id", 0), Column("Phone", 1),
      Column(record: "BillingAddress", 2, children: ["Street", "City"]), Column("Fax", 5),
    ])
    let output = try Flatten(naming: .path).layout(for: input)
    #expect(
      output.columns == [
        input.columns[0], input.columns[1],
        Column(
          name: "BillingAddress_Street", path: ["BillingAddress", "Street"],
          content: .slot(3, .string)),
        Column(
          name: "BillingAddress_City", path: ["BillingAddress", "City"],
          content: .slot(4, .string)),
        input.columns[3],
      ])
    #expect(output.slotCount == input.slotCount)
    #expect(output.fieldOrder == input.fieldOrder)
    #expect(output.schemaID == input.schemaID)
  }

  @Test("A scalar branch keeps the record's name beside the children")
  func scalarBranch() throws {
    let input = RecordLayout.of([
      Column(
        record: "Name", 1, scalar: .init(slot: 9, type: .string),
        children: ["Salutation", "FirstName", "LastName"]),
      Column("Type", 10),
    ])
    let path = try Flatten(naming: .path).layout(for: input)
    #expect(path.names == ["Name", "Name_Salutation", "Name_FirstName", "Name_LastName", "Type"])
    let sobject = try Flatten(naming: .sobject).layout(for: input)
    #expect(sobject.names == ["Name", "Salutation", "FirstName", "LastName", "Type"])
    #expect(sobject.columns[0].content == .slot(9, .string))
  }

  @Test("Nested records are flattened completely")
  func nested() throws {
    let inner = Column(
      name: "B", path: ["A", "B"],
      content: .record(
        slot: 2, scalar: nil,
        children: [Column(name: "C", path: ["A", "B", "C"], content: .slot(3, .int32))]))
    let input = RecordLayout.of([
      Column(name: "A", path: ["A"], content: .record(slot: 1, scalar: nil, children: [inner]))
    ])
    let output = try Flatten(naming: .path).layout(for: input)
    #expect(output.names == ["A_B_C"])
    #expect(output.columns[0].path == ["A", "B", "C"])
  }

  @Test("Two columns with the same name are an error that names both paths")
  func collision() throws {
    let input = RecordLayout.of([
      Column("BillingCity", 1), Column(record: "BillingAddress", 2, children: ["City"]),
    ])
    #expect(try Flatten(naming: .path).layout(for: input).names.count == 2)
    let error = try #require(throws: TransformError.self) {
      try Flatten(naming: .sobject).layout(for: input)
    }
    #expect(error.code == .duplicateColumn)
    #expect(
      error.message == """
        stage flatten: BillingCity and BillingAddress.City would both become column \
        'BillingCity' (topic /data/AccountChangeEvent, schema schema-1); rename or drop one of \
        them before this stage
        """)
  }
}
