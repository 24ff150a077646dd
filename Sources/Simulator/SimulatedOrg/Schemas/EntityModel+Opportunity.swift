// Fields of published schemas, and custom fields of our own (EventSchemas.md#schemas-of-the-simulator).

extension EntityModel {
  static let opportunity = EntityModel(
    category: .changeEvent, entity: "Opportunity", recordName: "OpportunityChangeEvent",
    keyPrefix: "006",
    versions: [
      (EntityModel.opportunityFields, ChangeType.symbols),
      (EntityModel.opportunityFields + [.added("Segment__c")], ChangeType.symbols),
    ])

  /// 35 fields after the header.
  private static let opportunityFields: [Field] = [
    .scalar("AccountId", .string, .accountID, "ForeignKey:EntityId"),
    .scalar("IsPrivate", .boolean, .boolean, "Data:Boolean"),
    .scalar("Name", .string, .text, "Data:Text"),
    .scalar("Description", .string, .longText, "Data:StringPlusClob"),
    .scalar("StageName", .string, .picklist, "Data:DynamicEnum"),
    .scalar("Amount", .double, .currency, "Data:Currency"),
    .scalar("Probability", .double, .percent, "Data:Percent"),
    .scalar("ExpectedRevenue", .double, .currency, "Data:Currency"),
    .scalar("TotalOpportunityQuantity", .double, .number, "Data:Double"),
    .scalar("CloseDate", .long, .dateOnly, "Data:DateOnly"),
    .scalar("Type", .string, .picklist, "Data:DynamicEnum"),
    .scalar("NextStep", .string, .text, "Data:Text"),
    .scalar("LeadSource", .string, .picklist, "Data:DynamicEnum"),
    .scalar("IsClosed", .boolean, .boolean, "Data:Boolean"),
    .scalar("IsWon", .boolean, .boolean, "Data:Boolean"),
    .scalar("ForecastCategory", .string, .picklist, "Data:StaticEnum"),
    .scalar("ForecastCategoryName", .string, .picklist, "Data:DynamicEnum"),
    .scalar("CampaignId", .string, .entityID, "ForeignKey:EntityId"),
    .scalar("HasOpportunityLineItem", .boolean, .boolean, "Data:Boolean"),
    .scalar("Pricebook2Id", .string, .entityID, "ForeignKey:EntityId"),
    .scalar("OwnerId", .string, .entityID, "ForeignKey:EntityId"),
    .scalar("CreatedDate", .long, .createdDate, "CreatedDate:DateTime"),
    .scalar("CreatedById", .string, .createdBy, "ForeignKey:EntityId"),
    .scalar("LastModifiedDate", .long, .modifiedDate, "Data:DateTime"),
    .scalar("LastModifiedById", .string, .modifiedBy, "ForeignKey:EntityId"),
    .scalar("LastStageChangeDate", .long, .dateTime, "Data:DateTime"),
    .scalar("ContactId", .string, .contactID, "ForeignKey:EntityId"),
    .scalar("ContractId", .string, .entityID, "ForeignKey:EntityId"),
    .scalar("LastAmountChangedHistoryId", .string, .entityID, "ForeignKey:EntityId"),
    .scalar("LastCloseDateChangedHistoryId", .string, .entityID, "ForeignKey:EntityId"),
    .scalar(
      "DeliveryInstallationStatus__c", .string, .picklist, "Data:DynamicEnum:00NDp00000S0031"),
    .scalar("TrackingNumber__c", .string, .text, "Data:Text:00NDp00000S0032"),
    .scalar("OrderNumber__c", .string, .text, "Data:Text:00NDp00000S0033"),
    .scalar("CurrentGenerators__c", .string, .text, "Data:Text:00NDp00000S0034"),
    .scalar("MainCompetitors__c", .string, .multiPicklist, "Data:MultiEnum:00NDp00000S0035"),
  ]
}
