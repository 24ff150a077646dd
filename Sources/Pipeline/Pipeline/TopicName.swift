internal import Bytes

/// What a topic's name says about the topic (TheService.md#topic-names).
///
/// - `/data/OpportunityChangeEvent`, `/data/Station__ChangeEvent`: changes to one object.
/// - `/data/ChangeEvents`, `/data/Sales__chn`: a channel, on which several objects share the stream.
/// - `/event/Order_Event__e`, `/event/Orders__chn`: platform events, of one kind or on a channel.
package enum TopicName {
  /// The changes to all objects.
  package static let allChanges = "/data/ChangeEvents"

  private static let changesPrefix = "/data/"
  private static let changesSuffix = "ChangeEvent"
  private static let platformEventsPrefix = "/event/"

  /// Whether several entities share the stream.
  package static func isChannel(_ topic: String) -> Bool {
    topic == Self.allChanges || topic.hasSuffix("__chn")
  }

  /// Whether the topic delivers changes to records.
  package static func hasChanges(_ topic: String) -> Bool { topic.hasPrefix(self.changesPrefix) }

  package static func hasPlatformEvents(_ topic: String) -> Bool {
    topic.hasPrefix(self.platformEventsPrefix)
  }

  /// Whether this is a valid name for a topic. Names from any source end up in paths and requests.
  package static func isValid(_ topic: String) -> Bool {
    let prefixes = [self.changesPrefix, self.platformEventsPrefix]
    guard let prefix = prefixes.first(where: { topic.hasPrefix($0) }) else { return false }
    let rest = topic.utf8.dropFirst(prefix.utf8.count)
    return (1...200).contains(rest.count) && rest.allSatisfy(\.isWordCharacter)
  }

  /// Whether the service can have a valid topic of this name: those of changes have only three
  /// forms, and those of platform events any.
  package static func hasKnownForm(_ topic: String) -> Bool {
    guard self.hasChanges(topic), !self.isChannel(topic) else { return true }
    let name = topic.dropFirst(self.changesPrefix.count)
    return name.hasSuffix(self.changesSuffix) && name.count > self.changesSuffix.count
  }

  /// `/data/OpportunityChangeEvent` of `Opportunity`, `/data/Foo__ChangeEvent` of `Foo__c`.
  package static func changes(of entity: String) -> String {
    let stem = entity.hasSuffix("__c") ? String(entity.dropLast()) : entity
    return "\(Self.changesPrefix)\(stem)\(Self.changesSuffix)"
  }

  /// The topic that was probably meant by one that `hasKnownForm` refuses: `/event/Order__e` by
  /// `/data/Order__e`, `/data/ContactChangeEvent` by `/data/Contact` or `/data/Contactchangeevent`.
  package static func known(like topic: String) -> String {
    let name = topic.dropFirst(self.changesPrefix.count)
    if name.hasSuffix("__e") { return "/event/\(name)" }
    let suffix = Self.changesSuffix
    let isMisspelled = name.lowercased().hasSuffix(suffix.lowercased())
    return self.changes(of: String(isMisspelled ? name.dropLast(suffix.count) : name))
  }

  /// `Opportunity` of `/data/OpportunityChangeEvent`; the last part of other topics' names.
  package static func entity(_ topic: String) -> String {
    self.entity(ofChangeEvent: topic.split(separator: "/").last.map { String($0) } ?? topic)
  }

  /// `Opportunity` of `OpportunityChangeEvent`, `Foo__c` of `Foo__ChangeEvent`; other names are
  /// unchanged.
  package static func entity(ofChangeEvent name: String) -> String {
    let suffix = Self.changesSuffix
    guard name.hasSuffix(suffix), name.count > suffix.count else { return name }
    let stem = name.dropLast(suffix.count)
    return stem.hasSuffix("__") ? stem + "c" : String(stem)
  }
}
