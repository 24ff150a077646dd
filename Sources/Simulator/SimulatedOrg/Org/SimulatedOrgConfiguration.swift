/// The org's content and logins, and the pace of its service.
package struct SimulatedOrgConfiguration: Sendable {
  package var seed: UInt64 = 1
  /// The number of events that exist when the server starts.
  package var events = 0
  /// The time at which they end, epoch milliseconds; nil: when it was started first with this state
  /// directory, else now.
  package var epoch: Int64?
  /// Over which they are spread, milliseconds.
  package var span: Int64 = 24 * 3_600_000
  /// Names of the topics that exist; empty: all.
  package var topics: [String] = []
  /// The kind of records and events.
  package var data = OrgData.random
  /// Shares among random values and events.
  package var mix = GeneratorMix()
  package var truthPath: String?
  /// A file that has the clock's distance from the machine's; see `SimulatorClock`.
  package var clockPath: String?
  /// CA, server key and the epoch are kept here, so that they survive a restart.
  package var stateDirectory: String?
  package var clientID = "simulator-client"
  package var clientSecret = "simulator-secret"
  /// The name of the user whom the app may log in.
  package var username = "integration@example.com"
  /// PEM file of the certificate or public key that assertions are verified with; nil: the JWT bearer
  /// flow is off.
  package var jwtCertificateFile: String?
  /// What assertions have to name; nil: the URL of the login.
  package var jwtAudience: String?
  package var refreshToken = "simulator-refresh-token"
  /// Every use replaces the refresh token.
  package var rotatesRefreshTokens = false
  /// Milliseconds; nil: tokens work until they are revoked.
  package var tokenLifetime: Int64?
  /// Silence with open credit after which an empty response is sent, milliseconds; at most 270 s in the
  /// real service.
  package var keepaliveInterval: Int64 = 90_000
  /// Between the first request and the first event, milliseconds.
  package var subscribeDelay = 20
  /// Nil: responses of natural sizes.
  package var maxResponseEvents: Int?

  /// The number of records of each object before the first event, which REST and Bulk then show.
  /// Nil: an org of random data has neither records nor REST and Bulk; a sales team has as many as
  /// suit its events.
  package var existing: Int?
  /// The same; nil only for an org without REST and Bulk.
  package var recordCount: Int? {
    self.existing ?? (self.data == .sales ? OrgData.usualSize(events: self.events) : nil)
  }
  /// Milliseconds after which REST shows a change.
  package var visibilityDelay: Int64 = 0
  /// Share of the records that the user may not see, 0…1.
  package var unshared = 0.0
  /// `Object.Field`: fields that the user may not see.
  package var hiddenFields: [String] = []
  /// Objects with amounts have several formula fields instead of one.
  package var hasFormulas = false
  /// REST and Bulk have `OpportunityFieldHistory`, with a row for each change of a tracked field.
  package var tracksFields = false
  /// `Object.Field=GROUP;GROUP/LEVEL`: how fields are classified.
  package var classifiedFields: [String] = []
  /// Events that are delivered in 24 hours, to all clients.
  package var deliveryLimit = 10_000_000
  /// Subscriptions that may be open at the same time; nil: any number.
  package var streamLimit: Int?
  /// Logins in an hour; nil: any number.
  package var loginLimit: Int?
  /// API names of user permissions that the user has in addition to `ApiEnabled`.
  package var userPermissions: [String] = []
  /// Fields of a query or retrieval beyond which it is too complicated; nil: any number.
  package var maxQueryFields: Int?
  /// API calls in 24 hours.
  package var callLimit = 100_000
  /// Milliseconds for which a Bulk job waits, and rows it writes in a second.
  package var bulkQueueTime: Int64 = 0
  package var bulkRate = 100_000.0

  package init() {}
}
