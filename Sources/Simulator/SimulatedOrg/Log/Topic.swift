/// Where a subscription begins (TheService.md#wire-format).
package enum ReplayPreset: Int, Sendable {
  case latest = 0
  case earliest = 1
  case custom = 2
}

/// A topic of the org and whose events it carries.
package struct Topic: Sendable {
  package var name: String
  package var members: [EntityModel]
  /// API names of fields whose current values are added to updates and deletions, per object.
  ///
  /// A channel with any has merged changes split: one event per record, all with one replay ID
  /// (TheService.md#enrichment-and-filters).
  var enrichedFields: [String: [String]] = [:]
  /// Channels of several objects have no schema of their own.
  package var isChannel: Bool

  var isEnriched: Bool { !self.enrichedFields.isEmpty }
  /// Platform events can be published by clients, change events cannot.
  package var canPublish: Bool {
    !self.isChannel && self.members.allSatisfy { $0.category == .platformEvent }
  }

  static func single(_ model: EntityModel) -> Topic {
    Topic(name: model.topic, members: [model], isChannel: false)
  }

  /// Everything the simulator can serve.
  package static let all = Self.catalogue(.sales)

  /// The topic of that name; nil if the simulator cannot serve it.
  static func named(_ name: String, of data: OrgData) -> Topic? {
    let number = name.wholeMatch(of: /\/data\/Station([1-9][0-9]?)__ChangeEvent/)?.output.1
    return Self.catalogue(data).first { $0.name == name }
      ?? number.flatMap { Int($0) }.flatMap(EntityModel.station(number:)).map(Topic.single)
  }

  /// The topics that an org has unless some are named. Users belong to a sales team.
  static func usual(_ data: OrgData) -> [Topic] {
    let all = Self.catalogue(data)
    return data == .sales ? all : all.filter { $0.members.first !== EntityModel.user }
  }

  static func catalogue(_ data: OrgData) -> [Topic] {
    [EntityModel.opportunity, .account, .contact, .station, .orderEvent, .messageEvent, .user].map(
      Topic.single) + [
        Topic(
          name: "/data/ChangeEvents",
          members: [EntityModel.opportunity, .account, .contact, .station]
            + (data == .sales ? [.user] : []), isChannel: true),
        Topic(
          name: "/data/Sales__chn", members: [EntityModel.opportunity, .account],
          enrichedFields: [
            "Account": ["Industry", "OwnerId"], "Opportunity": ["AccountId", "StageName"],
          ], isChannel: true),
        Topic(
          name: "/event/Orders__chn", members: [EntityModel.orderEvent, .messageEvent],
          isChannel: true),
      ]
  }
}
