// Fields of published schemas, and custom fields of our own (EventSchemas.md#schemas-of-the-simulator).

extension EntityModel {
  /// A custom object. Its first version has the older shapes: nine change types, and `XyzEncoded` in
  /// geolocations.
  static let station = EntityModel.station("Station", keyPrefix: "a00")

  /// `Station1__c` to `Station99__c`, which are as `Station__c` is: an org of many objects.
  static func station(number: Int) -> EntityModel? {
    guard (1...99).contains(number) else { return nil }
    return EntityModel.station(
      "Station\(number)", keyPrefix: number < 10 ? "a0\(number)" : "a\(number)")
  }

  private static func station(_ name: String, keyPrefix: String) -> EntityModel {
    EntityModel(
      category: .changeEvent, entity: "\(name)__c", recordName: "\(name)__ChangeEvent",
      keyPrefix: keyPrefix,
      versions: [
        (
          EntityModel.stationFields(location: Field.oldLocation),
          Array(ChangeType.symbols.dropLast())
        ),
        (
          EntityModel.stationFields(location: Field.location) + [.added("Segment__c")],
          ChangeType.symbols
        ),
      ])
  }

  /// 24 fields after the header; the second geolocation refers to the record type by name.
  private static func stationFields(location: (String, Int) -> Field) -> [Field] {
    [
      .scalar("OwnerId", .string, .entityID, "ForeignKey:EntityId"),
      .scalar("Name", .string, .text, "Data:Text"),
      .scalar("CreatedDate", .long, .createdDate, "CreatedDate:DateTime"),
      .scalar("CreatedById", .string, .createdBy, "ForeignKey:EntityId"),
      .scalar("LastModifiedDate", .long, .modifiedDate, "Data:DateTime"),
      .scalar("LastModifiedById", .string, .modifiedBy, "ForeignKey:EntityId"),
      .scalar("Active__c", .boolean, .boolean, "Data:Boolean:00NDp00000S0036"),
      .scalar("Cost__c", .double, .currency, "Data:Currency:00NDp00000S0037"),
      .scalar("Installed_On__c", .long, .dateOnly, "Data:DateOnly:00NDp00000S0038"),
      .scalar("Last_Reading__c", .long, .dateTime, "Data:DateTime:00NDp00000S0039"),
      .scalar("Contact_Email__c", .string, .email, "Data:Email:00NDp00000S0040"),
      location("LocalDegrees__c", 1),
      .scalar("Reading__c", .double, .number, "Data:Double:00NDp00000S0041"),
      .scalar("Load__c", .double, .percent, "Data:Percent:00NDp00000S0042"),
      .scalar("Hotline__c", .string, .phone, "Data:Phone:00NDp00000S0043"),
      .scalar("Status__c", .string, .picklist, "Data:DynamicEnum:00NDp00000S0044"),
      .scalar("Tags__c", .string, .multiPicklist, "Data:MultiEnum:00NDp00000S0045"),
      .scalar("Serial__c", .string, .text, "Data:Text:00NDp00000S0046"),
      .scalar("Manual__c", .string, .richText, "Data:HtmlStringPlusClob:00NDp00000S0047"),
      .scalar("Secret__c", .string, .encrypted, "Data:EncryptedText:00NDp00000S0048"),
      .scalar("Opens_At__c", .long, .timeOnly, "Data:TimeOnly:00NDp00000S0049"),
      .scalar("Portal__c", .string, .url, "Data:Url:00NDp00000S0050"),
      .scalar("Vendor__c", .string, .entityID, "ForeignKey:EntityId:00NDp00000S0051"),
      location("Depot__c", 2),
    ]
  }
}
