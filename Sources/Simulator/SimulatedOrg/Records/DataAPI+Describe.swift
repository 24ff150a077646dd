extension DataAPI {
  /// The objects with records among `sobjects` of `GET /sobjects`.
  var listedObjects: [String] {
    self.store.objects.filter { !$0.name.hasSuffix("__e") }.map { object in
      "{\"name\":\"\(object.name)\",\"label\":\"\(OrgField.label(of: object.name))\","
        + "\"keyPrefix\":\"\(object.keyPrefix)\",\"queryable\":true,"
        + "\"retrieveable\":true,\"replicateable\":true,\"custom\":\(object.name.hasSuffix("__c"))}"
    }
  }

  /// `GET /sobjects/X/describe`
  package func describe(_ name: String) throws(APIRefusal) -> String {
    let object = self.store.objects[try self.object(name)]
    return "{\"name\":\"\(object.name)\",\"label\":\"\(OrgField.label(of: object.name))\","
      + "\"keyPrefix\":\"\(object.keyPrefix)\",\"queryable\":true,"
      + "\"retrieveable\":true,\"replicateable\":true,\"fields\":["
      + object.fields.map(\.description).joined(separator: ",") + "]}"
  }
}

extension OrgField {
  /// A member of `fields` in a description.
  var description: String {
    "{\"name\":\"\(self.name)\",\"label\":\"\(Self.label(of: self.name))\","
      + "\"type\":\"\(self.type.rawValue)\","
      + "\"soapType\":\"\(self.type.soapType)\",\"compoundFieldName\":"
      + (self.compound.map { "\"\($0)\"" } ?? "null")
      + ",\"calculated\":\(self.isCalculated),\"custom\":\(self.isCustom),"
      + "\"nillable\":\(self.type != .boolean && self.type != .id),"
      + "\"filterable\":\(!self.isLong && !self.type.isCompound),"
      + "\"sortable\":\(!self.isLong && !self.type.isCompound),"
      + "\"length\":\(self.isLong ? 32_000 : self.type.isText ? 255 : 0),"
      + "\"encrypted\":\(self.type == .encryptedstring),\"deprecatedAndHidden\":false,"
      + "\"extraTypeInfo\":null,\"calculatedFormula\":"
      + (self.formula.map(Self.quoted) ?? "null")
      + ",\"formulaTreatNullNumberAsZero\":\(self.treatsBlankAsZero),"
      + "\"scale\":\([.double, .currency, .percent].contains(self.type) ? 2 : 0)"
      + ",\"inlineHelpText\":null,\"referenceTo\":["
      + (Self.references[self.name].map { "\"\($0)\"" } ?? "") + "],\"picklistValues\":["
      + self.choices.map {
        "{\"active\":\($0.isActive),\"defaultValue\":false,"
          + "\"label\":\(Self.quoted($0.label)),\"value\":\(Self.quoted($0.value))}"
      }.joined(separator: ",") + "]}"
  }

  private static func quoted(_ text: String) -> String {
    "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
  }

  private static let references = [
    "OwnerId": "User", "CreatedById": "User", "LastModifiedById": "User", "ManagerId": "User",
    "AccountId": "Account", "ContactId": "Contact", "UserRoleId": "UserRole",
  ]

  /// The values of a picklist. Records of random data may have others, as those of real orgs do.
  private var choices: [Picklist.Choice] {
    if let picklist = self.picklist { return picklist.ordered }
    let values: [String] =
      switch (self.type, self.name) {
      case (.picklist, "StageName"): DealStage.allCases.map(\.rawValue)
      case (.picklist, _), (.multipicklist, _):
        SampleText.picklist.map { String(decoding: $0, as: UTF8.self) }
      default: []
      }
    return values.map { Picklist.Choice($0) }
  }

  /// `Stage Name` of `StageName`, `Order Event` of `Order_Event__e`: what an admin may have written.
  static func label(of name: String) -> String {
    let isCustom = ["__c", "__e", "__s"].contains(where: name.hasSuffix)
    var label = ""
    for character in isCustom ? name.dropLast(3) : name[...] {
      if character.isUppercase, label.last?.isLowercase == true { label += " " }
      label.append(character == "_" ? " " : character)
    }
    return label
  }
}
