public import Pipeline
internal import PubSubAPI

/// A response together with the schemas of its events.
public struct PubSubResponse: SourceResponse {
  let view: FetchResponseView
  /// One for each valid schema ID of the events.
  let schemas: [ResolvedSchema]

  public var eventCount: Int { self.view.events.count }
  public var latestReplayID: ReplayID { ReplayID(Array(self.view[self.view.latestReplayIDField])) }
  public var pendingCredit: Int { self.view.pendingCredit }
}
