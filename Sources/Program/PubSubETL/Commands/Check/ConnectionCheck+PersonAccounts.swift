import Clocks
import Pipeline

/// Person accounts (ChangeEvents.md#person-accounts): some of their fields belong to a contact, whose
/// changes have to be captured too.
extension ConnectionCheck {
  static let contactTopic = TopicName.changes(of: "Contact")
  /// The field that accounts have in orgs with person accounts.
  private static let personField = "PersonContactId"

  /// A line if the pipeline does not get what it needs to keep fields of person accounts up to date.
  /// Asks for two topics at most.
  static func personAccounts(_ session: Session) async throws -> [String] {
    let source = session.configuration.source
    guard let topic = Self.topic(of: "Account", in: source),
      !source.topics.contains(where: { $0.name == Self.contactTopic })
    else { return [] }
    let layouts = try await session.layouts(
      of: [("Account", topic.name)], retry: RetrySchedule(giveUpAfter: .zero)
    ) { _, _ in }
    guard layouts["Account"]?.columns.contains(where: { $0.name == Self.personField }) == true
    else { return [] }
    let canSubscribe = (try? await session.connection.subscribableTopic(Self.contactTopic)) != nil
    return Self.personAccounts(topic, isSelected: canSubscribe).map { [$0] } ?? []
  }

  /// The topic that delivers an object's changes; nil if none is known to.
  private static func topic(
    of object: String, in source: SourceConfiguration
  ) -> SourceConfiguration.Topic? {
    source.topics.first { $0.name == TopicName.changes(of: object) }
      ?? source.topics.first { $0.isChannel && TopicName.hasChanges($0.name) }
  }

  /// - Parameters:
  ///   - topic: delivers the accounts' changes.
  ///   - isSelected: the service has a topic for contacts.
  /// - Returns: nil if everything is there.
  static func personAccounts(_ topic: SourceConfiguration.Topic, isSelected: Bool) -> String? {
    let effect =
      "warning: this org has person accounts; their contact fields (PersonEmail, those that end with "
      + "__pc, and others) stay up to date only if changes of contacts are captured, too"
    if !isSelected {
      return "\(effect); select Contact under Change Data Capture in Setup"
        + (topic.isChannel ? "" : ", and add \(Self.contactTopic) to source.topic")
    }
    guard topic.isChannel else { return "\(effect); add \(Self.contactTopic) to source.topic" }
    // The standard channel has every object that is selected.
    guard topic.name != "/data/ChangeEvents" else { return nil }
    return "\(effect); make sure that the channel \(topic.name) has ContactChangeEvent as a member"
  }
}
