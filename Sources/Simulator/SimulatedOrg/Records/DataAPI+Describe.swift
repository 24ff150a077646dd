extension DataAPI {
  /// `GET /sobjects`
  package func describeGlobal() -> String {
    let objects = self.store.objects.map { object in
      "{\"name\":\"\(object.name)\",\"keyPrefix\":\"\(object.keyPrefix)\",\"queryable\":true,"
        + "\"retrieveable\":true,\"replicateable\":true,\"custom\":\(object.name.hasSuffix("__c"))}"
    }
    return "{\"encoding\":\"UTF-8\",\"maxBatchSize\":200,\"sobjects\":["
      + objects.joined(separator: ",") + "]}"
  }

  /// `GET /sobjects/X/describe`
  package func describe(_ name: String) throws(APIRefusal) -> String {
    let object = self.store.objects[try self.object(name)]
    let fields = object.fields.map { field in
      "{\"name\":\"\(field.name)\",\"label\":\"\(field.name)\",\"type\":\"\(field.type.rawValue)\","
        + "\"soapType\":\"\(field.type.soapType)\",\"compoundFieldName\":"
        + (field.compound.map { "\"\($0)\"" } ?? "null")
        + ",\"calculated\":\(field.isCalculated),\"custom\":\(field.isCustom),"
        + "\"nillable\":\(field.type != .boolean && field.type != .id),"
        + "\"filterable\":\(!field.isLong && !field.type.isCompound),"
        + "\"sortable\":\(!field.isLong && !field.type.isCompound),"
        + "\"length\":\(field.isLong ? 32_000 : field.type.isText ? 255 : 0),"
        + "\"encrypted\":\(field.type == .encryptedstring),\"deprecatedAndHidden\":false,"
        + "\"extraTypeInfo\":null,\"referenceTo\":[],\"picklistValues\":[]}"
    }
    return "{\"name\":\"\(object.name)\",\"keyPrefix\":\"\(object.keyPrefix)\",\"queryable\":true,"
      + "\"retrieveable\":true,\"replicateable\":true,\"fields\":["
      + fields.joined(separator: ",") + "]}"
  }
}
