import JSON
import Testing

@testable import Pipeline

@Suite("Stage mask by classification")
struct MaskClassificationTests {
  private static let fields: [(String, FieldClassification)] = [
    ("Email", .init(compliance: ["PII", "GDPR"], sensitivity: ["Confidential"])),
    ("Name", .init(compliance: ["PII"])),
    ("MailingStreet", .init(sensitivity: ["MissionCritical"])),
    ("MailingAddress", .init()), ("Title", .init(sensitivity: ["Internal"])), ("Amount", .init()),
  ]

  private func known(
    _ fields: [(String, FieldClassification)] = Self.fields, schemaID: String = "schema-1"
  ) -> OrgClassification {
    let known = OrgClassification()
    var object = ObjectClassification()
    for (name, classification) in fields { object.add(name, classification) }
    #expect(known.learn(object, of: "Account", schemaID: schemaID, selectors: []) == [])
    return known
  }

  private func chain(_ stages: [String], _ known: OrgClassification?) throws -> StageChain {
    let chain = try StageChain(json: stages)
    chain.begin(RunValues(pipeline: "p", org: "", classification: known))
    return chain
  }

  private static let layout = RecordLayout.of(
    [
      Column("Email", 16), Column(record: "Name", 17, children: ["FirstName", "LastName"]),
      Column(record: "MailingAddress", 20, children: ["Street", "City"]), Column("Title", 23),
      Column("Amount", 24, .double), Column("Gone__c", 25, .int64),
    ], slotCount: 26)

  private func mask(_ classes: String, _ rest: String = #""with":"redact""#) -> String {
    #"{"type":"mask","classified":\#(classes),\#(rest)}"#
  }

  private static let all =
    #"{"compliance":["pii"],"sensitivity":["Confidential","Mission Critical"]}"#

  @Test("Classified fields, parts of compounds and undescribed fields are masked")
  func selection() throws {
    let chain = try self.chain([#"{"type":"flatten"}"#, self.mask(Self.all)], self.known())
    let found = try chain.maskedColumns(of: Self.layout).map { "\($0)" }
    #expect(
      found == [
        "Email: redact by stages[1], classified compliance PII, sensitivity Confidential",
        "Name_FirstName: redact by stages[1], classified compliance PII",
        "Name_LastName: redact by stages[1], classified compliance PII",
        "MailingAddress_Street: redact by stages[1], classified sensitivity MissionCritical",
        "Gone__c: redact by stages[1], not described by the org, so treated as classified",
      ])
  }

  @Test("A record that is not flattened is masked as a whole if any part is classified")
  func records() throws {
    let chain = try self.chain([self.mask(Self.all)], self.known())
    #expect(
      try chain.maskedColumns(of: Self.layout).map(\.column) == [
        "Email", "Name", "MailingAddress", "Gone__c",
      ])
  }

  @Test("A renamed column keeps its field's classification, and a column made by set has none")
  func otherStages() throws {
    let stages = [
      #"{"type":"rename","columns":{"Email":"contact","Title":"Email"}}"#,
      #"{"type":"set","columns":{"Copy":"Email","Amount":{"constant":"x"}}}"#,
      self.mask(#"{"compliance":["PII"]}"#, #""columns":["Copy"],"with":"drop""#),
    ]
    let found = try self.chain(stages, self.known()).maskedColumns(of: Self.layout)
    #expect(found.map(\.column) == ["contact", "Name", "Gone__c", "Copy"])
    #expect(found.last?.reason == .named("Copy"))
  }

  @Test("A mask leaves alone the columns that another mask has hidden, unless it names them")
  func twoMasks() throws {
    let stages = [
      self.mask(#"{"compliance":["GDPR"]}"#, #""with":"hash","key":"0123456789abcdef""#),
      self.mask(#"{"compliance":["PII"]}"#),
    ]
    let layout = RecordLayout.of([Column("Email", 16), Column("Title", 17)], slotCount: 18)
    let found = try self.chain(stages, self.known()).maskedColumns(of: layout)
    #expect(found.map { "\($0.column) \($0.method)" } == ["Email hash"])
  }

  @Test("A schema is refused until its classification is known")
  func notAsked() throws {
    for known in [nil, OrgClassification(), self.known(schemaID: "schema-0")] {
      let chain = try self.chain([self.mask(Self.all)], known)
      let error = #expect(throws: TransformError.self) { try chain.layout(for: Self.layout) }
      #expect(
        error?.message.contains("how the fields of Account are classified is not known") == true)
    }
  }

  @Test("A later answer covers new fields and names old ones that a selector now excludes")
  func laterAnswers() throws {
    let known = self.known()
    let chain = try self.chain([self.mask(Self.all)], known)
    _ = try chain.layout(for: Self.layout)
    var later = ObjectClassification()
    later.add("Email", .init(compliance: ["CCPA"]))
    later.add("Title", .init(sensitivity: ["Confidential"]))
    later.add("Amount", .init(sensitivity: ["Public"]))
    later.add("New__c", .init(compliance: ["PII"]))
    let selector = ClassificationSelector(compliance: ["PII"], sensitivity: ["Confidential"])
    #expect(
      known.learn(later, of: "Account", schemaID: "schema-2", selectors: [selector])
        == ["email", "title"])
    #expect(known.object("Account", schemaID: "schema-2")?["new__c"]?.compliance == ["PII"])
    // A field that the org no longer describes stays as it was.
    #expect(known.object("Account", schemaID: "schema-1")?["Name"]?.compliance == ["PII"])
  }

  @Test("Classification values that no field or org has are reported")
  func misspelt() throws {
    for (classes, expected) in [
      (#"{"compliance":["PPI"]}"#, "compliance 'PPI' (nearest: PCI, PII)"),
      (#"{"compliance":["Ours"]}"#, "compliance 'Ours'"), (#"{"compliance":["COPPA"]}"#, nil),
      (#"{"sensitivity":["Restricted","mission critical"]}"#, nil),
    ] {
      let chain = try self.chain([self.mask(classes)], self.known())
      _ = try chain.layout(for: Self.layout)
      let found = chain.unknownClassifications
      #expect(found == [expected].compactMap { $0 }.map { "stage mask (stages[0]): \($0)" })
    }
    let ignored = try self.chain(
      [self.mask(#"{"compliance":["Ours"]}"#, #""with":"redact","missing":"ignore""#)], self.known()
    )
    _ = try ignored.layout(for: Self.layout)
    #expect(ignored.unknownClassifications == [])
  }

  @Test(
    "Mistakes in the configuration are reported",
    arguments: [
      (#""with":"redact""#, "columns"), (#""classified":{},"with":"redact""#, "needs a value"),
      (#""classified":{"compliance":[]},"with":"redact""#, "needs a value"),
      (#""classified":{"compliance":[" "]},"with":"redact""#, "empty"),
      (#""classified":{"group":["PII"]},"with":"redact""#, "group"),
      (#""classified":{"compliance":["PII"]},"with":"year""#, "use drop, redact or hash"),
      (#""classified":{"compliance":["PII"]},"with":"truncate","length":3"#, "use drop, redact"),
      (#""classified":"PII","with":"drop""#, "expected an object"),
    ])
  func mistakes(members: String, expected: String) throws {
    let mistakes = JSONMistakes()
    let reader = JSONReader(
      try JSONValue(parsing: #"{"type":"mask",\#(members)}"#), path: "/stages/0",
      mistakes: mistakes)
    _ = TransformRegistry.stage(reading: reader)
    #expect(mistakes.all.contains { "\($0)".contains(expected) }, "\(mistakes.all)")
  }
}

@Suite("Stage mask and fields renamed during a run")
struct RenamedFieldTests {
  private static func layout(_ names: String..., entity: String = "Account") -> RecordLayout {
    RecordLayout(
      topic: "/data/ChangeEvents", schemaID: "schema-\(names.count)", entity: entity,
      family: .changeEvent, slotCount: 30, fieldOrder: [],
      columns: names.enumerated().map { Column($1, 16 + $0) })
  }

  private func refusal(
    _ layouts: [RecordLayout],
    _ stages: [String] = [#"{"type":"mask","columns":["Mail*","Phone"],"with":"redact"}"#]
  ) throws -> String? {
    let chain = try StageChain(json: stages)
    for layout in layouts {
      do {
        _ = try chain.layout(for: layout)
      } catch let error as TransformError {
        return error.message
      }
    }
    return nil
  }

  @Test("A schema that lacks a masked field and has a new one is refused, whichever comes first")
  func renamed() throws {
    let (old, new) = (
      Self.layout("Name", "Mail__c", "Phone"), Self.layout("Name", "Address__c", "Phone")
    )
    let message = try #require(try self.refusal([old, new]))
    #expect(message.contains("this schema of Account lacks 'Mail*', which another one has"))
    #expect(message.contains("has 'Address__c', which the other lacks"))
    #expect(try self.refusal([Self.layout("Name", "Phone", "Mail__c", "Fax"), old, new]) != nil)
    #expect(
      try self.refusal(
        [new, old], [#"{"type":"mask","columns":["Address__c"],"with":"redact"}"#]) != nil)
  }

  @Test("A deleted, new or masked field, or one of another object, is accepted")
  func harmless() throws {
    let old = Self.layout("Name", "Mail__c", "Phone")
    #expect(try self.refusal([old, Self.layout("Name", "Phone")]) == nil)
    #expect(try self.refusal([Self.layout("Name", "Phone"), old]) == nil)
    #expect(try self.refusal([old, Self.layout("Title", "Fax", entity: "Contact")]) == nil)
    #expect(try self.refusal([old, Self.layout("Name", "Mail2__c", "Phone", "New__c")]) == nil)
    let both = [
      #"{"type":"mask","columns":["Mail__c"],"with":"redact","missing":"ignore"}"#,
      #"{"type":"mask","columns":["Address__c"],"with":"redact"}"#,
    ]
    let new = Self.layout("Name", "Address__c", "Phone")
    #expect(try self.refusal([new, old], both) == nil)
    #expect(try self.refusal([old, new], both) == nil)
  }
}
