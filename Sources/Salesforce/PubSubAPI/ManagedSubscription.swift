internal import PubSubMessages
internal import SwiftProtobuf

/// The parameters of a `ManagedSubscribe` call. The record in the org names the topic, and the
/// service knows the position.
public struct ManagedSubscription: Sendable, Hashable {
  /// A record `ManagedEventSubscription`.
  public enum Record: Sendable, Hashable, CustomStringConvertible {
    /// Its developer name.
    case developerName(String)
    /// 15 or 18 characters.
    case id(String)

    public var description: String {
      switch self {
      case .developerName(let name), .id(let name): name
      }
    }
  }

  /// The subscription's record.
  public var record: Record
  /// The subscription's topic, only for traces.
  public var topic: String
  /// 0...100.
  public var credit: Int

  /// - Parameters:
  ///   - record: the subscription in the org.
  ///   - topic: the subscription's topic, only for traces.
  ///   - credit: events to request, 0...100.
  public init(record: Record, topic: String, credit: Int) {
    self.record = record
    self.topic = topic
    self.credit = credit
  }

  var firstRequest: Eventbus_V1_ManagedFetchRequest {
    .with {
      switch self.record {
      case .developerName(let name): $0.developerName = name
      case .id(let id): $0.subscriptionID = id
      }
      $0.numRequested = Int32(self.credit)
    }
  }
}

/// A position that a managed subscription is to store.
public struct ManagedCommit: Sendable, Hashable {
  /// Chosen by the client; the answer repeats it.
  public var id: String
  /// As received from the service.
  public var replayID: [UInt8]

  /// - Parameters:
  ///   - id: identifies the commit in its answer.
  ///   - replayID: the replay ID of the last event that need not be delivered again.
  public init(id: String, replayID: [UInt8]) {
    self.id = id
    self.replayID = replayID
  }
}
