import GRPCCore
import PubSubAPI
import SalesforceAuth

extension ConnectionCheck {
  /// Logs in and asks the service for every topic; a line per thing that was found to work.
  /// Subscribes to nothing, so costs no delivery.
  static func askService(
    _ configuration: PipelineConfiguration
  ) async throws(Failure) -> [String] {
    do {
      let credentials = OrgCredentials(configuration.source.org)
      let token = try await credentials.provider.token()
      var lines = ["login: org \(token.organizationID) at \(token.instanceURL)"]
      let transport = try PipelineAssembly(configuration: configuration).transport()
      let client = GRPCClient(transport: transport)
      let connections = Task { try await client.runConnections() }
      defer { connections.cancel() }
      let service = PubSubClient(client)
      for topic in configuration.source.topics {
        let found = try await service.topic(
          named: topic.name, credentials: try await credentials.credentials())
        guard found.canSubscribe else {
          throw RunFailure(
            .refused, reason: "cannot_subscribe",
            "\(topic.name): the run-as user may not subscribe; it needs View All on the object")
        }
        lines.append("topic: \(topic.name) can be subscribed to")
      }
      return lines
    } catch let error as PubSubError {
      let isRefused = [.notFound, .permissionDenied, .unauthenticated].contains(error.status)
      throw Failure(exitCode: isRefused ? .refused : .unavailable, message: error.message)
    } catch {
      let failure = RunFailure(error)
      throw Failure(exitCode: failure.exitCode, message: failure.message)
    }
  }
}
