package import Pipeline
package import SalesforceREST

/// The schema that the change events of an object would have if it had any, made from its description.
///
/// Its fields are flat, as REST has them (`BillingCity`). Their types are those of change events, so
/// that a column gets the same type from either. Formulas and roll-ups are left out: they change
/// without a new stamp, so a copy of them would be outdated and nothing would show it.
package struct PolledSchema: Sendable, Equatable {
  /// An Avro schema.
  package let json: String

  /// Identifies the schema: a hash of the text, since other types of fields have other `doc`.
  package var id: String {
    let hash = self.json.utf8.reduce(0xcbf2_9ce4_8422_2325) { (hash: UInt64, byte) in
      (hash ^ UInt64(byte)) &* 0x100_0000_01b3
    }
    return "described-" + String(hash, radix: 16)
  }

  /// Fields that every row has as metadata.
  private static let ofEveryRow: Set<String> = ["Id", "IsDeleted", "SystemModstamp"]

  /// - Throws: `RESTError` for an object whose changes nothing shows.
  package init(_ object: ObjectDescription) throws(RESTError) {
    guard object.isQueryable else {
      throw RESTError(
        .configuration, "\(object.name): the org does not allow queries of this object")
    }
    guard object.field("SystemModstamp") != nil || object.isFieldHistory else {
      throw RESTError(
        .configuration,
        "\(object.name) has no field SystemModstamp, so its changes cannot be found; remove it from "
          + "source.lookups.objects")
    }
    self.init(object) { !Self.ofEveryRow.contains($0.name) && !$0.isCalculated }
  }

  /// A schema of some fields of an object with change events, which its events do not have. Those
  /// that are not single values are left out.
  ///
  /// - Parameters:
  ///   - layout: the layout of the object's events as decoded, before any stage.
  ///   - refresh: the fields that are wanted.
  /// - Returns: nil if there are none.
  package init?(of refresh: Refresh, _ object: ObjectDescription, missingIn layout: RecordLayout) {
    let carried = layout.soqlNames
    let wanted = object.fields.filter { field in
      !carried.contains(field.name) && !Refresh.ofEveryRow.contains(field.name)
        && (refresh.fields?.contains(field.name) ?? field.isCalculated)
        && Self.types(of: field, as: field.type) != nil
    }
    guard !wanted.isEmpty else { return nil }
    let names = Set(wanted.map(\.name))
    self.init(object) { names.contains($0.name) }
  }

  private init(_ object: ObjectDescription, _ isTaken: (ObjectDescription.Field) -> Bool) {
    let fields = object.fields.compactMap { field -> String? in
      guard isTaken(field) else { return nil }
      // The values before and after have the type of the field that was changed.
      let type = object.isFieldHistory && field.type == "anyType" ? "string" : field.type
      return Self.member(field, as: type)
    }
    let stem = object.name.hasSuffix("__c") ? String(object.name.dropLast()) : object.name
    self.json = """
      {"type":"record","name":"\(stem)ChangeEvent","namespace":"com.sforce.eventbus","fields":[\
      \(([Self.header] + fields).joined(separator: ","))]}
      """
  }

  /// Nil for a field that is not a single value.
  private static func member(_ field: ObjectDescription.Field, as described: String) -> String? {
    guard let (avro, type) = Self.types(of: field, as: described) else { return nil }
    let doc = type.map { ",\"doc\":\"\($0)\"" } ?? ""
    return "{\"name\":\"\(field.name)\",\"type\":[\"null\",\"\(avro)\"]\(doc),\"default\":null}"
  }

  /// The Avro type and the `doc` of a field in change events (ChangeEvents.md#field-types).
  private static func types(
    of field: ObjectDescription.Field, as described: String
  ) -> (avro: String, doc: String?)? {
    guard !field.isCompound else { return nil }
    switch described {
    case "anyType": return nil
    case "boolean": return ("boolean", "Data:Boolean")
    case "int": return ("int", "Data:Integer")
    case "long": return ("long", "Data:Long")
    // Events have the parts of an address or location without a type.
    case "double": return ("double", Self.isCoordinate(field) ? nil : "Data:Double")
    case "currency": return ("double", "Data:Currency")
    case "percent": return ("double", "Data:Percent")
    case "date": return ("long", "Data:DateOnly")
    case "datetime": return ("long", "Data:DateTime")
    case "time": return ("long", "Data:TimeOnly")
    case "id", "reference": return ("string", "ForeignKey:EntityId")
    case "multipicklist": return ("string", "Data:MultiEnum")
    case "picklist", "combobox": return ("string", "Data:DynamicEnum")
    case "textarea": return ("string", "Data:StringPlusClob")
    case "email": return ("string", "Data:Email")
    case "phone": return ("string", "Data:Phone")
    default: return ("string", "Data:Text")
    }
  }

  private static func isCoordinate(_ field: ObjectDescription.Field) -> Bool {
    ["Latitude", "Longitude", "Latitude__s", "Longitude__s"].contains(where: field.name.hasSuffix)
  }

  private static let header: String = {
    let strings = #"{"type":"array","items":"string"}"#
    let changeType =
      #"{"type":"enum","name":"ChangeType","symbols":["CREATE","UPDATE","DELETE","UNDELETE"]}"#
    let members = [
      ("entityName", #""string""#), ("recordIds", strings), ("changeType", changeType),
      ("changeOrigin", #""string""#), ("transactionKey", #""string""#),
      ("sequenceNumber", #""int""#), ("commitTimestamp", #""long""#),
      ("commitNumber", #""long""#), ("commitUser", #""string""#), ("nulledFields", strings),
      ("diffFields", strings), ("changedFields", strings),
    ].map { #"{"name":"\#($0.0)","type":\#($0.1)}"# }
    return
      #"{"name":"ChangeEventHeader","type":{"type":"record","name":"ChangeEventHeader","fields":["#
      + members.joined(separator: ",") + "]},\"doc\":\"Data:ComplexValueType\"}"
  }()
}
