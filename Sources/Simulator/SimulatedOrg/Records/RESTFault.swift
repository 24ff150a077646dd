/// Something that goes wrong on purpose in the REST API, once or several times.
package struct RESTFault: Sendable, Equatable {
  /// The calls that it can hit.
  package enum Call: String, Sendable, CaseIterable {
    case describe = "Describe"
    case query = "Query"
    case queryMore = "QueryMore"
    case retrieve = "Retrieve"
    case limits = "Limits"
    /// What the org says of fields, by the Tooling API.
    case fieldDefinition = "FieldDefinition"
    /// The record of a managed subscription, by the Tooling API.
    case managedSubscription = "ManagedEventSubscription"
    /// The custom channels, by the Tooling API.
    case eventChannel = "PlatformEventChannel"
    /// `updated` and `deleted`.
    case replication = "Replication"
    case createJob = "BulkCreate"
    case jobStatus = "BulkStatus"
    case results = "BulkResults"
  }

  /// What happens to a job.
  package enum JobFault: Sendable, Equatable {
    case failed(message: String?)
    case aborted
    /// It stays in progress.
    case stuck
    /// It is gone after this many pages of results.
    case vanished(afterPages: Int)
  }

  package enum Action: Sendable, Equatable {
    /// An error with an HTTP status, as JSON.
    case status(Int, code: String, message: String)
    /// A page of a proxy.
    case html(Int)
    /// The body ends in the middle of a line, as if it were complete.
    case cut
    /// The connection closes in the middle of the body.
    case drop
    /// A byte every two seconds.
    case drip
    /// `Sforce-NumberOfRecords` names one row more than there is.
    case rowCount
    /// `BulkCreate` only.
    case job(JobFault)
  }

  package var action: Action
  package var call: Call
  package var times: Int
  /// Which of the calls it hits; events do not count here.
  package var moment: FaultMoment

  package init(_ action: Action, call: Call, times: Int = 1, moment: FaultMoment = .next) {
    (self.action, self.call, self.times, self.moment) = (action, call, times, moment)
  }
}
