/// The org's content and logins, and the pace of its service.
public struct SimulatedOrgConfiguration: Sendable {
  public var seed: UInt64 = 1
  /// The number of events that exist when the server starts.
  public var events = 0
  /// The time at which they end, epoch milliseconds; nil: when it was started first with this state
  /// directory, else now.
  public var epoch: Int64?
  /// Over which they are spread, milliseconds.
  public var span: Int64 = 24 * 3_600_000
  /// Names of the topics that exist; empty: all.
  public var topics: [String] = []
  /// The kind of records and events.
  public var data = OrgData.random
  /// Shares among random values and events.
  public var mix = GeneratorMix()
  public var truthPath: String?
  /// CA, server key and the epoch are kept here, so that they survive a restart.
  public var stateDirectory: String?
  public var clientID = "simulator-client"
  public var clientSecret = "simulator-secret"
  /// The name of the user whom the app may log in.
  public var username = "integration@example.com"
  /// PEM file of the certificate or public key that assertions are verified with; nil: the JWT bearer
  /// flow is off.
  public var jwtCertificateFile: String?
  /// What assertions have to name; nil: the URL of the login.
  public var jwtAudience: String?
  public var refreshToken = "simulator-refresh-token"
  /// Every use replaces the refresh token.
  public var rotatesRefreshTokens = false
  /// Milliseconds; nil: tokens work until they are revoked.
  public var tokenLifetime: Int64?
  /// Silence with open credit after which an empty response is sent, milliseconds; at most 270 s in the
  /// real service.
  public var keepaliveInterval: Int64 = 90_000
  /// Between the first request and the first event, milliseconds.
  public var subscribeDelay = 20
  /// Nil: responses of natural sizes.
  public var maxResponseEvents: Int?

  /// The number of records of each object before the first event, which REST and Bulk then show.
  /// Nil: an org of random data has neither records nor REST and Bulk; a sales team has as many as
  /// suit its events.
  public var existing: Int?
  /// The same; nil only for an org without REST and Bulk.
  public var recordCount: Int? {
    self.existing ?? (self.data == .sales ? OrgData.usualSize(events: self.events) : nil)
  }
  /// Milliseconds after which REST shows a change.
  public var visibilityDelay: Int64 = 0
  /// Share of the records that the user may not see, 0…1.
  public var unshared = 0.0
  /// `Object.Field`: fields that the user may not see.
  public var hiddenFields: [String] = []
  /// `Object.Field=GROUP;GROUP/LEVEL`: how fields are classified.
  public var classifiedFields: [String] = []
  /// Events that are delivered in 24 hours, to all clients.
  public var deliveryLimit = 10_000_000
  /// Subscriptions that may be open at the same time; nil: any number.
  public var streamLimit: Int?
  /// Logins in an hour; nil: any number.
  public var loginLimit: Int?
  /// API names of user permissions that the user has in addition to `ApiEnabled`.
  public var userPermissions: [String] = []
  /// Fields of a query or retrieval beyond which it is too complicated; nil: any number.
  public var maxQueryFields: Int?
  /// API calls in 24 hours.
  public var callLimit = 100_000
  /// Milliseconds for which a Bulk job waits, and rows it writes in a second.
  public var bulkQueueTime: Int64 = 0
  public var bulkRate = 100_000.0

  public init() {}
}
