// Fields of published schemas, and custom fields of our own (EventSchemas.md#schemas-of-the-simulator).

extension EntityModel {
  static let contact = EntityModel(
    category: .changeEvent, entity: "Contact", recordName: "ContactChangeEvent", keyPrefix: "003",
    versions: [
      (EntityModel.contactFields, ChangeType.symbols),
      (EntityModel.contactFields + [.added("Segment__c")], ChangeType.symbols),
    ])

  /// 42 fields after the header.
  private static let contactFields: [Field] = [
    .scalar("AccountId", .string, .accountID, "ForeignKey:EntityId"),
    .scalar("IsPersonAccount", .boolean, .boolean, "Data:Boolean"),
    .personName("Name"),
    .address("OtherAddress"),
    .address("MailingAddress"),
    .scalar("Phone", .string, .phone, "Data:Phone"),
    .scalar("Fax", .string, .phone, "Data:Phone"),
    .scalar("MobilePhone", .string, .phone, "Data:Phone"),
    .scalar("HomePhone", .string, .phone, "Data:Phone"),
    .scalar("OtherPhone", .string, .phone, "Data:Phone"),
    .scalar("AssistantPhone", .string, .phone, "Data:Phone"),
    .scalar("ReportsToId", .string, .entityID, "ForeignKey:EntityId"),
    .scalar("Email", .string, .email, "Data:Email"),
    .scalar("Title", .string, .text, "Data:Text"),
    .scalar("Department", .string, .text, "Data:Text"),
    .scalar("AssistantName", .string, .text, "Data:Text"),
    .scalar("LeadSource", .string, .picklist, "Data:DynamicEnum"),
    .scalar("Birthdate", .long, .dateOnly, "Data:DateOnly"),
    .scalar("Description", .string, .longText, "Data:StringPlusClob"),
    .scalar("OwnerId", .string, .entityID, "ForeignKey:EntityId"),
    .scalar("HasOptedOutOfEmail", .boolean, .boolean, "Data:Boolean"),
    .scalar("HasOptedOutOfFax", .boolean, .boolean, "Data:Boolean"),
    .scalar("DoNotCall", .boolean, .boolean, "Data:Boolean"),
    .scalar("CreatedDate", .long, .createdDate, "CreatedDate:DateTime"),
    .scalar("CreatedById", .string, .createdBy, "ForeignKey:EntityId"),
    .scalar("LastModifiedDate", .long, .modifiedDate, "Data:DateTime"),
    .scalar("LastModifiedById", .string, .modifiedBy, "ForeignKey:EntityId"),
    .scalar("LastCURequestDate", .long, .dateTime, "Data:DateTime"),
    .scalar("LastCUUpdateDate", .long, .dateTime, "Data:DateTime"),
    .scalar("EmailBouncedReason", .string, .text, "Data:Text"),
    .scalar("EmailBouncedDate", .long, .dateTime, "Data:DateTime"),
    .scalar("Jigsaw", .string, .text, "Data:Text"),
    .scalar("JigsawContactId", .string, .autoNumber, "ExternalForeignKey:ExternalId"),
    .scalar("CleanStatus", .string, .picklist, "Data:StaticEnum"),
    .scalar("IndividualId", .string, .entityID, "ForeignKey:EntityId"),
    .scalar("Pronouns", .string, .picklist, "Data:DynamicEnum"),
    .scalar("GenderIdentity", .string, .picklist, "Data:DynamicEnum"),
    .scalar("ContactSource", .string, .picklist, "Data:StaticEnum"),
    .scalar("BuyerAttributes", .string, .multiPicklist, "Data:MultiEnum"),
    .scalar("Level__c", .string, .picklist, "Data:DynamicEnum:00NDp00000S0028"),
    .scalar("Languages__c", .string, .multiPicklist, "Data:MultiEnum:00NDp00000S0029"),
    .scalar("GUID__c", .string, .text, "Data:Text:00NDp00000S0030"),
  ]
}
