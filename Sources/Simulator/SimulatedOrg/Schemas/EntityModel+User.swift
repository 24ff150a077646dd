// Fields that the object has in every org (EventSchemas.md#schemas-of-the-simulator).

extension EntityModel {
  static let user = EntityModel(
    category: .changeEvent, entity: "User", recordName: "UserChangeEvent", keyPrefix: "005",
    versions: [(EntityModel.userFields, ChangeType.symbols)])

  /// 31 fields after the header.
  private static let userFields: [Field] = [
    .scalar("Username", .string, .email, "Data:Text"),
    .personName("Name"),
    .scalar("CompanyName", .string, .text, "Data:Text"),
    .scalar("Division", .string, .text, "Data:Text"),
    .scalar("Department", .string, .text, "Data:Text"),
    .scalar("Title", .string, .text, "Data:Text"),
    .address("Address"),
    .scalar("Email", .string, .email, "Data:Email"),
    .scalar("Phone", .string, .phone, "Data:Phone"),
    .scalar("Fax", .string, .phone, "Data:Phone"),
    .scalar("MobilePhone", .string, .phone, "Data:Phone"),
    .scalar("Alias", .string, .text, "Data:Text"),
    .scalar("CommunityNickname", .string, .text, "Data:Text"),
    .scalar("IsActive", .boolean, .boolean, "Data:Boolean"),
    .scalar("TimeZoneSidKey", .string, .picklist, "Data:StaticEnum"),
    .scalar("UserRoleId", .string, .entityID, "ForeignKey:EntityId"),
    .scalar("LocaleSidKey", .string, .picklist, "Data:StaticEnum"),
    .scalar("ReceivesInfoEmails", .boolean, .boolean, "Data:Boolean"),
    .scalar("ReceivesAdminInfoEmails", .boolean, .boolean, "Data:Boolean"),
    .scalar("EmailEncodingKey", .string, .picklist, "Data:StaticEnum"),
    .scalar("ProfileId", .string, .entityID, "ForeignKey:EntityId"),
    .scalar("UserType", .string, .picklist, "Data:StaticEnum"),
    .scalar("LanguageLocaleKey", .string, .picklist, "Data:StaticEnum"),
    .scalar("EmployeeNumber", .string, .text, "Data:Text"),
    .scalar("ManagerId", .string, .entityID, "ForeignKey:EntityId"),
    .scalar("CreatedDate", .long, .createdDate, "CreatedDate:DateTime"),
    .scalar("CreatedById", .string, .createdBy, "ForeignKey:EntityId"),
    .scalar("LastModifiedDate", .long, .modifiedDate, "Data:DateTime"),
    .scalar("LastModifiedById", .string, .modifiedBy, "ForeignKey:EntityId"),
    .scalar("ForecastEnabled", .boolean, .boolean, "Data:Boolean"),
    .scalar("AboutMe", .string, .longText, "Data:StringPlusClob"),
  ]
}
