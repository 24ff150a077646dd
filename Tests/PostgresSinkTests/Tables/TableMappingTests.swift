import Pipeline
import PostgresClient
import PostgresSink
import Testing

@Suite("Table mapping") struct TableMappingTests {
  private func configuration(
    _ change: (inout PostgresSinkConfiguration) -> Void = { _ in }
  ) -> PostgresSinkConfiguration {
    var configuration = PostgresSinkConfiguration(connection: .init(url: ""))
    change(&configuration)
    return configuration
  }

  private func address(_ first: Int) -> Column {
    Column(
      name: "BillingAddress", path: ["BillingAddress"],
      content: .record(
        slot: first, scalar: nil,
        children: [
          Column(
            name: "City", path: ["BillingAddress", "City"], content: .slot(first + 1, .string))
        ]))
  }

  @Test(
    "Types follow the schema and its Salesforce types",
    arguments: [
      (.string, "Data:Text", .text), (.string, nil, .text), (.string, "ForeignKey:EntityId", .text),
      (.string, "Data:MultiEnum", .textArray), (.string, "Data:DynamicEnum", .text),
      (.double, "Data:Currency", .numeric), (.double, "Data:Percent", .numeric),
      (.double, "Data:Double:00NgL00000vXNVG", .numeric), (.double, "Data:Double", .numeric),
      (.double, "Data:Location", .doublePrecision), (.double, "Data", .doublePrecision),
      (.double, nil, .doublePrecision), (.float, nil, .real), (.int32, "Data:Integer", .integer),
      (.int64, nil, .bigint), (.boolean, nil, .boolean), (.bytes, nil, .bytea),
      (.decimal(precision: 9, scale: 2), nil, .numeric), (.uuid, nil, .uuid),
      (.date(.milliseconds), "Data:DateOnly", .date),
      (.time(.milliseconds), "Data:TimeOnly", .time),
      (.timestamp(.milliseconds, isLocal: false), "CreatedDate:DateTime", .timestamptz),
      (.timestamp(.microseconds, isLocal: true), nil, .timestamp), (.stringList, nil, .textArray),
      (.json, nil, .jsonb), (.duration, nil, .interval), (.enumeration(["A"]), nil, .text),
    ] as [(ColumnType, String?, PostgresType)])
  func types(type: ColumnType, salesforceType: String?, expected: PostgresType) throws {
    let layout = RecordLayout.test([Column("Some", 0, type, salesforceType: salesforceType)])
    let mapping = try TableMapping(layout, self.configuration())
    #expect(mapping.fields.map(\.type) == [expected])
    #expect(mapping.fields[0].salesforceType == salesforceType)
  }

  @Test("Decimals use existing double columns, unless the configuration says numeric")
  func earlierTypes() throws {
    func earlier(
      _ type: ColumnType, _ salesforceType: String?, _ configured: PostgresType? = nil
    )
      throws -> PostgresType?
    {
      let layout = RecordLayout.test([Column("Some", 0, type, salesforceType: salesforceType)])
      let configuration = self.configuration { $0.columnTypes["Some"] = configured }
      return try TableMapping(layout, configuration).fields[0].earlierType
    }
    for name in ["Data:Currency", "Data:Percent", "Data:Double:00NgL00000vXNVG"] {
      #expect(try earlier(.double, name) == .doublePrecision)
      #expect(try earlier(.double, name, .numeric) == nil)
      #expect(try earlier(.double, name, .doublePrecision) == nil)
    }
    #expect(try earlier(.double, nil) == nil)
    #expect(try earlier(.decimal(precision: 9, scale: 2), "Data:Double") == nil)
    #expect(try earlier(.string, "Data:Text") == nil)
  }

  @Test("Compound fields are jsonb, or columns once flattened, in both naming modes")
  func compounds() throws {
    let layout = RecordLayout.test([self.address(MetadataSlot.count)], slotCount: 20)
    let configuration = self.configuration()
    let whole = try TableMapping(layout, configuration).fields[0]
    #expect(whole.name == "billingaddress" && whole.type == .jsonb)
    let path = try TableMapping(Flatten(naming: .path).layout(for: layout), configuration).fields[0]
    #expect(path.name == "billingaddress_city" && path.path == "BillingAddress.City")
    let sobject = try TableMapping(Flatten(naming: .sobject).layout(for: layout), configuration)
    #expect(sobject.fields.map(\.name) == ["billingcity"] && sobject.fields[0].type == .text)
  }

  @Test("Two fields with the same name are an error that names both")
  func duplicates() throws {
    let layout = RecordLayout.test([
      Column("StageName", 0, .string),
      Column(
        name: "STAGENAME", path: ["Other", "Stage"], content: .slot(MetadataSlot.count + 1, .string)
      ),
    ])
    let error = #expect(throws: PostgresError.self) {
      _ = try TableMapping(layout, self.configuration())
    }
    #expect(error?.disposition == .configuration)
    #expect(error?.message.contains("StageName") ?? false)
    #expect(error?.message.contains("Other.Stage") ?? false)
    _ = try TableMapping(layout, self.configuration { $0.columns = .asIs })
  }

  @Test("Names that are reserved in the tables are refused", arguments: ["Id", "_Epoch", "_stale"])
  func reservedNames(name: String) {
    let layout = RecordLayout.test([Column(name, 0, .string)])
    let error = #expect(throws: PostgresError.self) {
      _ = try TableMapping(layout, self.configuration())
    }
    #expect(error?.message.contains("field \(name) ") ?? false)
  }

  @Test("Metadata columns never become data columns, whatever their name")
  func metadata() throws {
    let renamed = Column(
      name: "topic", path: ["_topic"], content: .constant("t"), isMetadata: true)
    let layout = RecordLayout.test([renamed, Column("A", 0, .string)])
    #expect(try TableMapping(layout, self.configuration()).fields.map(\.name) == ["a"])
  }

  @Test("The configuration can choose types by name, path or entity")
  func configuredTypes() throws {
    let layout = RecordLayout.test([Column("Amount", 0, .double, salesforceType: "Data:Currency")])
    for key in ["Amount", "Opportunity.Amount"] {
      let mapping = try TableMapping(
        layout, self.configuration { $0.columnTypes[key] = .doublePrecision })
      #expect(mapping.fields[0].type == .doublePrecision)
    }
    let other = try TableMapping(
      layout, self.configuration { $0.columnTypes["Account.Amount"] = .doublePrecision })
    #expect(other.fields[0].type == .numeric)
    let error = #expect(throws: PostgresError.self) {
      _ = try TableMapping(layout, self.configuration { $0.columnTypes["Amount"] = .date })
    }
    #expect(error?.message.contains("Opportunity.Amount") ?? false)
  }

  @Test("Table names follow templates, are shortened, and never collide with bookkeeping tables")
  func tableNames() throws {
    let standard = self.configuration()
    #expect(try TableMapping.tableName(of: "Opportunity", .current, standard) == "opportunity")
    #expect(
      try TableMapping.tableName(of: "My_Obj__c", .history, standard) == "my_obj__c_history")
    let other = self.configuration {
      $0.tables = .init(current: "SF {entity}/{entity}", history: "_etl_{entity}")
      $0.columns = .asIs
    }
    #expect(try TableMapping.tableName(of: "Lead", .current, other) == "SF Lead/Lead")
    #expect(throws: PostgresError.self) { try TableMapping.tableName(of: "Lead", .history, other) }
    let long = String(repeating: "x", count: 60)
    let name = try TableMapping.tableName(of: long, .history, standard)
    #expect(name.utf8.count == 63)
    #expect(try name != TableMapping.tableName(of: long + "y", .history, standard))
  }

  @Test("Types are recognized by all their names")
  func typeNames() {
    #expect(PostgresType(named: "double precision") == .doublePrecision)
    #expect(PostgresType(named: "FLOAT8") == .doublePrecision)
    #expect(PostgresType(named: "numeric") == .numeric && PostgresType(named: "int") == .integer)
    #expect(
      PostgresType(named: "timestamptz") == .timestamptz && PostgresType(named: "money") == nil)
  }
}
