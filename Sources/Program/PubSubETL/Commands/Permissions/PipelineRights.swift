import Pipeline

/// The minimal rights of a pipeline's run-as user.
///
/// Source: RESTAndBulk.md#permissions, TheService.md#what-the-org-hides.
struct PipelineRights: Equatable {
  struct Object: Equatable {
    var name: String
    /// All records, whoever owns them. Change events of an object are only sent to users with it.
    var viewsAll: Bool
  }

  /// Sorted by name.
  var objects: [Object]
  /// API names of user permissions, sorted.
  var userPermissions: [String]
  /// One sentence each: what the file does not tell, or what is wider than wished.
  var remarks: [String]

  /// Objects whose records are in an account, which cannot be read without it.
  private static let accountChildren: Set<String> = [
    "Asset", "Contact", "Contract", "Opportunity", "Order", "Quote",
  ]

  init(_ configuration: PipelineConfiguration) {
    self.init(configuration.source)
    // FieldDefinition is there for users with it only.
    guard !configuration.classificationSelectors.isEmpty else { return }
    self.userPermissions = Set(self.userPermissions).union(["ViewSetup"]).sorted()
    self.remarks.append(
      "View Setup and Configuration is granted because a stage masks by the org's data classification"
    )
  }

  init(_ source: SourceConfiguration) {
    var objects: [String: Bool] = [:]
    var permissions: Set<String> = ["ApiEnabled"]
    var remarks: [String] = []
    var changed = Set(source.snapshotObjects.map(\.entity) + source.lookups.objects)
    for topic in source.topics {
      if topic.isChannel {
        if source.snapshot.objects.isEmpty || TopicName.hasPlatformEvents(topic.name) {
          remarks.append(
            "\(topic.name): the file does not name the objects of this channel; add them to the "
              + "permission set"
              + (TopicName.hasPlatformEvents(topic.name)
                ? "" : ", or list them in source.snapshot.objects"))
        }
      } else if TopicName.hasChanges(topic.name) {
        changed.insert(TopicName.entity(topic.name))
      } else {
        objects[TopicName.entity(topic.name)] = false
      }
    }
    for name in changed {
      switch name {
      case "Task", "Event":
        permissions.insert("ViewAllData")
        remarks.append(
          "\(name): Salesforce has no View All for this object alone, so the permission set grants "
            + "View All Data: reading all records of all objects")
      case "User": permissions.insert("ViewAllUsers")
      default: objects[name] = true
      }
    }
    if objects.keys.contains(where: Self.accountChildren.contains), objects["Account"] == nil {
      objects["Account"] = false
      remarks.append(
        "Account: read access only, because Salesforce requires it for the objects of the pipeline")
    }
    self.objects = objects.map { Object(name: $0.key, viewsAll: $0.value) }
      .sorted { $0.name < $1.name }
    self.userPermissions = permissions.sorted()
    self.remarks = remarks
  }
}
