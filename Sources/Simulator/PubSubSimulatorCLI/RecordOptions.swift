import ArgumentParser
import SimulatedOrg

struct RecordOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Serves REST and Bulk; every object has this many records before the first event. Default: "
        + "150 with a sales team (half of --events if that is more), which always has 12 users; "
        + "else no REST and Bulk."))
  var existing: Int?
  @Option(help: "Writes the org's records at the end and on SIGUSR1, NDJSON.")
  var state: String?
  @Option(help: "Milliseconds after which REST and Bulk show a change.")
  var visibilityDelay: Int64 = 0
  @Option(help: "Share of the records that the user may not see.")
  var unshared = 0.0
  @Option(
    name: .customLong("hidden-field"), help: "Object.Field that the user may not see; repeatable.")
  var hiddenFields: [String] = []
  @Flag(name: .customLong("formulas"), help: "Opportunity has several formula fields, not one.")
  var hasFormulas = false
  @Option(
    name: .customLong("classify"),
    help: ArgumentHelp(
      "How a field is classified, such as 'Contact.Email=PII;GDPR/Confidential'; repeatable.",
      valueName: "field=groups/level"))
  var classifiedFields: [String] = []
  @Option(
    name: .customLong("user-permission"),
    help: "User permission that the user has, such as ModifyAllData; repeatable.")
  var userPermissions: [String] = []
  @Option(help: "Fields beyond which a query or retrieval is refused as too complicated.")
  var maxQueryFields: Int?
  @Option(help: "API calls in 24 hours.")
  var callLimit = 100_000
  @Flag(
    name: .customLong("field-history"),
    help: "REST and Bulk have OpportunityFieldHistory, with the changes of tracked fields.")
  var tracksFields = false
  @Flag(help: "Compresses what REST and Bulk answer, for clients that accept gzip.")
  var gzip = false
  @Option(help: "Milliseconds for which a Bulk job is queued.")
  var bulkQueueTime: Int64 = 0
  @Option(help: "Rows that a Bulk job writes in a second.")
  var bulkRate = 100_000.0

  func validate() throws {
    if let existing = self.existing, !(0...5_000_000).contains(existing) {
      throw ValidationError("--existing must be 0 to 5000000")
    }
    guard (0...600_000).contains(self.visibilityDelay) else {
      throw ValidationError("--visibility-delay must be 0 to 600000 ms")
    }
    guard (0...1).contains(self.unshared) else {
      throw ValidationError("--unshared must be 0 to 1")
    }
    guard self.bulkRate > 0, self.bulkQueueTime >= 0, self.callLimit >= 0 else {
      throw ValidationError("--bulk-rate, --bulk-queue-time and --call-limit must not be negative")
    }
  }

  func set(_ org: inout SimulatedOrgConfiguration) {
    org.existing = self.existing
    org.visibilityDelay = self.visibilityDelay
    org.unshared = self.unshared
    org.hiddenFields = self.hiddenFields
    org.hasFormulas = self.hasFormulas
    org.tracksFields = self.tracksFields
    org.classifiedFields = self.classifiedFields
    org.userPermissions = self.userPermissions
    org.maxQueryFields = self.maxQueryFields
    org.callLimit = self.callLimit
    org.bulkQueueTime = self.bulkQueueTime
    org.bulkRate = self.bulkRate
  }
}
