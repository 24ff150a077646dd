/// The objects in which the org keeps the changes of fields (`OpportunityFieldHistory`) for months.
package enum FieldHistory {
  /// The object that has the field history of another.
  package static func entity(of object: String) -> String {
    if object.hasSuffix("__c") { return "\(object.dropLast(3))__History" }
    return object == "Opportunity" ? "OpportunityFieldHistory" : "\(object)History"
  }

  package static func isFieldHistory(_ entity: String) -> Bool { entity.hasSuffix("History") }

  /// The field with the ID of the changed record.
  package static func parent(_ object: String) -> String {
    object.hasSuffix("__c") ? "ParentId" : "\(object)Id"
  }

  /// The fields that every field history has and that views of changes need.
  package static let needed = ["Field", "OldValue", "NewValue", "CreatedDate", "CreatedById"]
  /// `EntityId` in the row with IDs. A change of a reference has another row with names.
  package static let dataType = "DataType"
}
