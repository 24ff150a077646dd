/// The progress of a client's calls, for logs. Without tokens and payloads.
public enum ServiceTrace: Sendable {
  /// The first request of a subscription has been sent.
  case subscribed(Subscription)
  /// The first request of a managed subscription has been sent.
  case managedSubscribed(ManagedSubscription)
  /// A managed subscription has asked the service to store a position.
  case committed(ManagedSubscription, ManagedCommit)
  /// A subscription has asked for more events.
  case requested(topic: String, count: Int)
  /// A subscription has received a response.
  case received(topic: String, FetchResponseView)
  /// A call with one answer has succeeded.
  case answered(Call, rpcID: String, after: Duration)
  /// A call has ended; the error is nil if it ended with status OK or the client ended it.
  case ended(Call, PubSubError?)

  /// A call and its object.
  public enum Call: Sendable, Hashable, CustomStringConvertible {
    /// `GetTopic`, by the name of the topic.
    case topic(String)
    /// `GetSchema`.
    case schema(id: String)
    /// `Subscribe`.
    case subscription(topic: String)
    /// `ManagedSubscribe`, by the name or the ID of the subscription.
    case managedSubscription(String)
    /// `Publish`.
    case publication(topic: String)
    /// `PublishStream`.
    case publishStream(topic: String)

    public var description: String {
      switch self {
      case .topic(let name): "GetTopic \(name)"
      case .schema(let id): "GetSchema \(id)"
      case .subscription(let topic): "Subscribe to \(topic)"
      case .managedSubscription(let name): "ManagedSubscribe to \(name)"
      case .publication(let topic): "Publish to \(topic)"
      case .publishStream(let topic): "PublishStream to \(topic)"
      }
    }
  }
}
