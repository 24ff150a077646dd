// Platform events (EventSchemas.md#schemas-of-the-simulator). The first versions are published schemas,
// so their IDs are known.

extension EntityModel {
  /// First version: schema ID `_CADE3qaegX3ECEW0rlbYA`.
  static let orderEvent = EntityModel(
    category: .platformEvent, entity: "Order_Event__e", recordName: "Order_Event__e",
    keyPrefix: "e00",
    versions: [
      (EntityModel.orderFields, []),
      (
        EntityModel.orderFields + [
          .scalar("Is_Express__c", .boolean, .boolean, "Data:Boolean:00NDp00000E0001"),
          .scalar("Placed_At__c", .long, .dateTime, "Data:DateTime:00NDp00000E0002"),
          .scalar("Due_On__c", .long, .dateOnly, "Data:DateOnly:00NDp00000E0003"),
          .scalar("Note__c", .string, .text, "Data:StringPlusClob:00NDp00000E0004"),
        ], []
      ),
    ])

  /// Schema ID `K98aAtiNFBjA-PJlcvaQ2g`.
  static let messageEvent = EntityModel(
    category: .platformEvent, entity: "CM_Test_Event_Two__e", recordName: "CM_Test_Event_Two__e",
    keyPrefix: "e01",
    versions: [
      (
        EntityModel.eventFields + [
          .scalar("Message__c", .string, .text, "Data:Text:00NDp00000E0005")
        ], []
      )
    ])

  private static let eventFields: [Field] = [
    .required("CreatedDate", .long, .createdDate, "CreatedDate:DateTime"),
    .required("CreatedById", .string, .createdBy, "CreatedBy:EntityId"),
  ]

  private static let orderFields: [Field] =
    EntityModel.eventFields + [
      .scalar("Order_Number__c", .string, .autoNumber, "Data:Text:00NgL00000vXMFS"),
      .scalar("City__c", .string, .city, "Data:Text:00NgL00000vXNGM"),
      .scalar("Amount__c", .double, .number, "Data:Double:00NgL00000vXNVG"),
    ]
}
