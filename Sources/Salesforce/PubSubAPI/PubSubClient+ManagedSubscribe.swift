internal import FoundationEssentials
internal import GRPCCore
internal import PubSubMessages
internal import SwiftProtobuf

extension PubSubClient {
  /// Runs one managed subscription until the service or the caller ends it.
  ///
  /// Like `subscribe`, but the service knows where to begin, and stores the positions that are
  /// added to `requests`. Finishing `requests` closes the request side: the service then ends the
  /// call, and the subscription is free for another client within seconds; after any other end it
  /// may stay taken for a quarter of an hour (TheService.md#managed-subscriptions).
  ///
  /// - Parameters:
  ///   - requests: credit and commits after the first request.
  ///   - onOpen: called when the first request has been sent on a live connection.
  ///   - onResponse: as for `subscribe`; a response may answer a commit, with or without events.
  public func managedSubscribe(
    _ start: ManagedSubscription, credentials: Credentials, requests: ManagedRequestQueue,
    onOpen: @Sendable @escaping () async -> Void = {},
    onResponse: @Sendable @escaping (FetchResponseView) async throws -> Bool
  ) async throws {
    let onTrace = self.onTrace
    let first = start.firstRequest
    try await self.converse(
      .managedSubscription("\(start.record)"), topic: start.topic,
      Eventbus_V1_PubSub.Method.ManagedSubscribe.descriptor,
      FetchResponseDeserializer(isManaged: true), credentials,
      onEnd: { requests.finish() }, onResponse: onResponse,
      write: { (writer: RPCWriter<Eventbus_V1_ManagedFetchRequest>) in
        try await writer.write(first)
        onTrace?(.managedSubscribed(start))
        await onOpen()
        while let request = await requests.next() {
          try await writer.write(request.message)
          if request.credit > 0 {
            onTrace?(.requested(topic: start.topic, count: request.credit))
          }
          if let commit = request.commit { onTrace?(.committed(start, commit)) }
        }
      })
  }
}

extension ManagedRequestQueue.Request {
  var message: Eventbus_V1_ManagedFetchRequest {
    .with {
      $0.numRequested = Int32(self.credit)
      guard let commit = self.commit else { return }
      $0.commitReplayIDRequest = .with {
        $0.commitRequestID = commit.id
        $0.replayID = .init(commit.replayID)
      }
    }
  }
}
