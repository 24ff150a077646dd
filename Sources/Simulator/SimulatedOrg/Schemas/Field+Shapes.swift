// Compound records of EventSchemas.md#shape.

extension Field {
  static func scalar(_ name: String, _ type: ScalarType, _ kind: ValueKind, _ doc: String) -> Field
  {
    Field(name: name, doc: doc, shape: .scalar(type, kind))
  }

  static func required(
    _ name: String, _ type: ScalarType, _ kind: ValueKind, _ doc: String
  )
    -> Field
  {
    Field(name: name, doc: doc, shape: .scalar(type, kind), isRequired: true)
  }

  /// The custom field that second versions have.
  static func added(_ name: String) -> Field {
    .scalar(name, .string, .picklist, "Data:DynamicEnum:00NDp00000T0001")
  }

  static func address(_ name: String) -> Field {
    Field(
      name: name, doc: "Data:Address",
      shape: .compound(
        record: "Address",
        children: [
          Leaf(name: "Street", type: .string, kind: .street),
          Leaf(name: "City", type: .string, kind: .city),
          Leaf(name: "State", type: .string, kind: .state),
          Leaf(name: "PostalCode", type: .string, kind: .postalCode),
          Leaf(name: "Country", type: .string, kind: .country),
          Leaf(name: "StateCode", type: .string, kind: .stateCode),
          Leaf(name: "CountryCode", type: .string, kind: .countryCode),
          Leaf(name: "Latitude", type: .double, kind: .latitude),
          Leaf(name: "Longitude", type: .double, kind: .longitude),
          Leaf(name: "GeocodeAccuracy", type: .string, kind: .geocodeAccuracy),
        ]))
  }

  private static let nameChildren = [
    Leaf(name: "Salutation", type: .string, kind: .salutation),
    Leaf(name: "FirstName", type: .string, kind: .firstName),
    Leaf(name: "LastName", type: .string, kind: .lastName),
  ]

  static func personName(_ name: String) -> Field {
    Field(
      name: name, doc: "Data:PersonName",
      shape: .compound(record: "PersonName", children: Self.nameChildren))
  }

  static func switchableName(_ name: String) -> Field {
    Field(
      name: name, doc: "Data:Switchable_PersonName",
      shape: .switchableName(children: Self.nameChildren))
  }

  private static let locationChildren = [
    Leaf(name: "Latitude", type: .double, kind: .latitude),
    Leaf(name: "Longitude", type: .double, kind: .longitude),
  ]

  /// - Parameter number: of the fields of this kind in the object, for the ID.
  static func location(_ name: String, _ number: Int) -> Field {
    Field(
      name: name, doc: "Data:Location:00NDp00000L000\(number)",
      shape: .compound(record: "Location", children: Self.locationChildren))
  }

  /// The shape of 2023.
  static func oldLocation(_ name: String, _ number: Int) -> Field {
    Field(
      name: name, doc: "Data:Location:00NDp00000L000\(number)",
      shape: .compound(
        record: "Location",
        children: Self.locationChildren + [
          Leaf(name: "XyzEncoded", type: .string, kind: .encrypted)
        ]
      ))
  }
}
