/// What the org holds, whom it lets in, and how its service paces what it sends.
public struct SimulatedOrgConfiguration: Sendable {
  public var seed: UInt64 = 1
  /// Events that are there when the server starts.
  public var events = 0
  /// The time at which they end, epoch milliseconds; nil: when it was started first with this state
  /// directory, else now.
  public var epoch: Int64?
  /// Over which they are spread, milliseconds.
  public var span: Int64 = 24 * 3_600_000
  /// Names of the topics that exist; empty: all.
  public var topics: [String] = []
  public var mix = GeneratorMix()
  public var truthPath: String?
  /// CA, server key and the epoch are kept here, so that they survive a restart.
  public var stateDirectory: String?
  public var clientID = "simulator-client"
  public var clientSecret = "simulator-secret"
  /// Milliseconds; nil: tokens work until they are revoked.
  public var tokenLifetime: Int64?
  /// Silence with open credit after which an empty response is sent, milliseconds; at most 270 s in the
  /// real service.
  public var keepaliveInterval: Int64 = 90_000
  /// Between the first request and the first event, milliseconds.
  public var subscribeDelay = 20
  /// Nil: responses of natural sizes.
  public var maxResponseEvents: Int?

  public init() {}
}
