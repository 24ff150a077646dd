/// What the org lists of objects, events and channels (`GET /sobjects`, PlatformEventChannel of the
/// Tooling API).
extension Org {
  package static let channelObject = "PlatformEventChannel"
  private static let channelColumns = [
    "DeveloperName", "NamespacePrefix", "ChannelType", "MasterLabel",
  ]

  /// Everything that can have events, whether a topic of this org serves it or not: as in a real org,
  /// where change events of objects that are not selected are listed, too.
  private var eventModels: [EntityModel] {
    Topic.catalogue(self.configuration.data).filter { !$0.isChannel }.compactMap(\.members.first)
  }

  /// `GET /sobjects`; nil without the objects of REST.
  package func describeGlobal() -> String? {
    guard let api = self.dataAPI else { return nil }
    let events = self.eventModels.map { model in
      let isChange = model.category == .changeEvent
      let label = OrgField.label(of: model.entity)
      return "{\"name\":\"\(model.recordName)\","
        + "\"label\":\"\(isChange ? "Change Event: " : "")\(label)\","
        + "\"keyPrefix\":\(isChange ? "null" : "\"\(model.keyPrefix)\""),"
        + "\"associateEntityType\":\(isChange ? "\"ChangeEvent\"" : "null"),"
        + "\"associateParentEntity\":\(isChange ? "\"\(model.entity)\"" : "null"),"
        + "\"queryable\":false,\"retrieveable\":\(isChange),\"replicateable\":false,"
        + "\"custom\":\(model.recordName.hasSuffix("__e"))}"
    }
    return "{\"encoding\":\"UTF-8\",\"maxBatchSize\":200,\"sobjects\":["
      + (api.listedObjects + events).joined(separator: ",") + "]}"
  }

  /// `GET /sobjects/X__e/describe`; nil for everything else.
  package func describeEvent(_ name: String) -> String? {
    guard self.dataAPI != nil,
      let model = self.eventModels.first(where: { $0.recordName == name }),
      model.category == .platformEvent,
      let schema = self.publisher.currentSchema(of: model) ?? model.versions.last
    else { return nil }
    let fields =
      [OrgField(name: "ReplayId", type: .string, source: .id)]
      + schema.fields.compactMap { field in
        guard case .scalar(_, let kind) = field.shape else { return nil }
        return OrgField.field(field.name, kind, 0)
      } + [OrgField(name: "EventUuid", type: .string, source: .id)]
    return "{\"name\":\"\(name)\",\"label\":\"\(OrgField.label(of: name))\","
      + "\"keyPrefix\":\"\(model.keyPrefix)\",\"queryable\":false,\"retrieveable\":false,"
      + "\"replicateable\":false,\"fields\":["
      + fields.map(\.description).joined(separator: ",") + "]}"
  }

  /// The answer to `SELECT DeveloperName, … FROM PlatformEventChannel`, which needs View Setup and
  /// Configuration: the custom channels.
  package func eventChannels(_ text: String) throws(APIRefusal) -> String {
    guard self.userPermissions.contains("ViewSetup") else {
      throw .unknownObject(Self.channelObject)
    }
    let words = text.split { " ,".contains($0) }.map(String.init)
    guard words.first == "SELECT", words.count > 3, words[words.count - 2] == "FROM" else {
      throw .malformed("unexpected token: only all channels can be queried")
    }
    let columns = words[1..<words.count - 2]
    for column in columns where !Self.channelColumns.contains(column) {
      throw .unknownField(column, of: Self.channelObject)
    }
    let suffix = "__chn"
    let names = self.log.topics.keys.filter { $0.hasSuffix(suffix) }.sorted()
    let rows = names.enumerated().map { number, name in
      let parts = name.split(separator: "/")
      let developerName = String(parts[1].dropLast(suffix.count))
      let values = [
        "DeveloperName": developerName, "ChannelType": String(parts[0]),
        "MasterLabel": OrgField.label(of: developerName),
      ]
      let members = columns.map { "\"\($0)\":" + (values[$0].map(JSONText.string) ?? "null") }
      return "{\"attributes\":{\"type\":\"\(Self.channelObject)\",\"url\":\"/services/data/v"
        + "\(DataAPI.version)/tooling/sobjects/\(Self.channelObject)/0YL00000000000\(number)AAA\"},"
        + members.joined(separator: ",") + "}"
    }
    return "{\"size\":\(rows.count),\"totalSize\":\(rows.count),\"done\":true,"
      + "\"queryLocator\":null,\"entityTypeName\":\"\(Self.channelObject)\",\"records\":["
      + rows.joined(separator: ",") + "]}"
  }
}
