import JSON
import Pipeline
import PubSubSource
import SalesforceREST
import Testing

@testable import RESTSource

@Suite("Schemas made of descriptions") struct PolledSchemaTests {
  private static func description(
    _ fields: [(name: String, type: String)], name: String = "UserRole", queryable: Bool = true,
    calculated: Set<String> = [], choice: String? = nil
  ) throws -> ObjectDescription {
    let fields = fields.map { field -> JSONValue in
      [
        "name": .string(field.name), "label": .string(field.name), "type": .string(field.type),
        "calculated": .boolean(calculated.contains(field.name)),
        "picklistValues": choice.map {
          [["value": .string($0), "label": "A", "active": true, "defaultValue": false]]
        } ?? nil,
      ]
    }
    let json: JSONValue = [
      "name": .string(name), "keyPrefix": "00E", "queryable": .boolean(queryable),
      "retrieveable": true, "fields": .array(fields),
    ]
    return try #require(ObjectDescription(stored: json))
  }

  private static let base = [
    ("Id", "id"), ("IsDeleted", "boolean"), ("SystemModstamp", "datetime"),
  ]

  @Test("Columns have the Salesforce types of change events; fields without values are left out")
  func columns() throws {
    let object = try Self.description(
      Self.base + [
        ("Name", "string"), ("ParentRoleId", "reference"), ("Amount", "currency"),
        ("Size", "double"), ("Rate", "percent"), ("Count", "int"), ("Born", "date"),
        ("At", "datetime"), ("Hour", "time"), ("Kinds", "multipicklist"), ("Kind", "picklist"),
        ("Active", "boolean"), ("Text", "textarea"), ("HomeAddress", "address"),
        ("HomeLatitude", "double"), ("Formula__c", "double"), ("Photo", "base64"),
        ("Any", "anyType"), ("New", "newest"),
      ], calculated: ["Formula__c"])
    let layout = try AvroEventDecoder(
      json: PolledSchema(object).json, schemaID: "x", topic: "/data/UserRoleChangeEvent"
    ).layout
    #expect(layout.entity == "UserRole")
    let columns = layout.columns.filter { !$0.isMetadata }
    #expect(
      columns.map { "\($0.name) \($0.salesforceType ?? "-")" } == [
        "Name Data:Text", "ParentRoleId ForeignKey:EntityId", "Amount Data:Currency",
        "Size Data:Double", "Rate Data:Percent", "Count Data:Integer", "Born Data:DateOnly",
        "At Data:DateTime", "Hour Data:TimeOnly", "Kinds Data:MultiEnum",
        "Kind Data:DynamicEnum", "Active Data:Boolean", "Text Data:StringPlusClob",
        "HomeLatitude -", "New Data:Text",
      ])
    // Every column is read.
    let plan = SnapshotPlan(layout, object, findsDeleted: true)
    #expect(plan.unread.isEmpty && plan.fields.count == columns.count + 3)
    #expect(plan.fields.last == "IsDeleted" && plan.deletedField == plan.fields.count - 1)
    #expect(SnapshotPlan(layout, object).deletedField == nil)
  }

  @Test(
    "Fields of a refresh that events lack have columns of their types after those of the events")
  func unsent() throws {
    let object = try Self.description(
      Self.base + [
        ("Name", "string"), ("BillingCity", "string"), ("Total__c", "currency"),
        ("Days__c", "double"), ("Sent__c", "double"), ("Seen", "datetime"), ("Home", "address"),
      ], calculated: ["Days__c", "Total__c", "Sent__c", "BillingCity", "Home"])
    let events = try AvroEventDecoder(
      json: PolledSchema(
        Self.description(
          Self.base + [("Name", "string"), ("Sent__c", "double")], name: "Account")
      ).json, schemaID: "s", topic: "/data/AccountChangeEvent"
    ).layout
    let city = Column(name: "City", path: ["BillingAddress", "City"], content: .slot(90, .string))
    let address = Column(
      name: "BillingAddress", path: ["BillingAddress"],
      content: .record(slot: 91, scalar: nil, children: [city]))
    let layout = events.adding(slots: 80).with(columns: events.columns + [address])
    func columns(_ fields: Set<String>?) throws -> [String] {
      let refresh = Refresh(fields: fields, every: .seconds(60))
      guard let schema = PolledSchema(of: refresh, object, missingIn: layout) else { return [] }
      let read = try AvroEventDecoder(
        json: schema.json, schemaID: "x", topic: "/data/AccountChangeEvent"
      ).layout
      let all = layout.adding(onlyRead: read)
      #expect(
        all.schemaID == "s"
          && all.columns.prefix(layout.columns.count).elementsEqual(layout.columns))
      let plan = SnapshotPlan(all, object)
      #expect(plan.unread.map(\.name).allSatisfy { $0 != "Days__c" })
      return all.columns.filter(\.isOnlyRead).enumerated().map { index, column in
        #expect(
          column.content == .slot(layout.slotCount + index, .double) || index > 1 || fields != nil)
        return "\(column.name) \(column.salesforceType ?? "-")"
      }
    }
    #expect(try columns(nil) == ["Total__c Data:Currency", "Days__c Data:Double"])
    #expect(
      try columns(["Seen", "SystemModstamp", "Id", "IsDeleted", "Home", "Name", "Other__c"])
        == ["SystemModstamp Data:DateTime", "Seen Data:DateTime"])
    #expect(try columns(["Name", "Sent__c"]) == [])
  }

  @Test("The ID of the schema shows another type of a field, and a custom object keeps its name")
  func identity() throws {
    let date = try PolledSchema(Self.description(Self.base + [("At", "date")]))
    let time = try PolledSchema(Self.description(Self.base + [("At", "datetime")]))
    #expect(date.id != time.id && date != time)
    let custom = try Self.description(Self.base + [("Name", "string")], name: "Depot__c")
    let layout = try AvroEventDecoder(
      json: PolledSchema(custom).json, schemaID: "x", topic: "/data/Depot__ChangeEvent"
    ).layout
    #expect(layout.entity == "Depot__c")
  }

  @Test("An object whose changes cannot be found is refused")
  func refused() throws {
    let noStamp = try Self.description([("Id", "id"), ("Name", "string")])
    let error = #expect(throws: RESTError.self) { try PolledSchema(noStamp) }
    #expect(error?.message.contains("has no field SystemModstamp") == true)
    let hidden = try Self.description(Self.base, queryable: false)
    #expect(throws: RESTError.self) { try PolledSchema(hidden) }
  }

  @Test("The rows of a field history, which never change, are found by their creation")
  func fieldHistory() throws {
    let fields = [
      ("Id", "id"), ("IsDeleted", "boolean"), ("OpportunityId", "reference"),
      ("CreatedDate", "datetime"), ("Field", "picklist"), ("OldValue", "anyType"),
      ("NewValue", "anyType"),
    ]
    let object = try Self.description(fields, name: "OpportunityFieldHistory")
    let layout = try AvroEventDecoder(
      json: PolledSchema(object).json, schemaID: "x",
      topic: "/data/OpportunityFieldHistoryChangeEvent"
    ).layout
    let columns = layout.columns.filter { !$0.isMetadata }
    #expect(
      columns.map { "\($0.name) \($0.salesforceType ?? "-")" } == [
        "OpportunityId ForeignKey:EntityId", "CreatedDate Data:DateTime",
        "Field Data:DynamicEnum", "OldValue Data:Text", "NewValue Data:Text",
      ])
    let plan = SnapshotPlan(layout, object, findsDeleted: true)
    #expect(plan.unread.isEmpty)
    #expect(
      plan.fields == [
        "Id", "CreatedDate", "OpportunityId", "Field", "OldValue", "NewValue", "IsDeleted",
      ])
    // Without the values, nothing shows that records stay as they are.
    #expect(throws: RESTError.self) {
      try PolledSchema(Self.description(fields.filter { $0.0 != "OldValue" }))
    }
  }

  @Test("An object without a recycle bin has no field that says so")
  func withoutBin() throws {
    let object = try Self.description([
      ("Id", "id"), ("SystemModstamp", "datetime"), ("Name", "string"),
    ])
    let layout = try AvroEventDecoder(
      json: PolledSchema(object).json, schemaID: "x", topic: "/data/UserRoleChangeEvent"
    ).layout
    #expect(SnapshotPlan(layout, object, findsDeleted: true).deletedField == nil)
  }

  @Test("A description that was stored is the same")
  func stored() throws {
    var object = try Self.description(Self.base + [("Kind", "picklist")], choice: "a")
    #expect(object.fields[3].choices.count == 1)
    object.fields[3].references = ["User"]
    object.fields[3].helpText = "Which?\nOne."
    #expect(ObjectDescription(stored: object.json) == object)
  }
}
