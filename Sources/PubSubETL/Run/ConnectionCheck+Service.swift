import PostgresClient
import PostgresSink
import PubSubAPI
import SalesforceAuth

extension ConnectionCheck {
  /// Logs in and asks the service for every topic; a line per thing that was found to work.
  /// Subscribes to nothing, so costs no delivery.
  static func askService(
    _ configuration: PipelineConfiguration
  ) async throws(Failure) -> [String] {
    do {
      return try await PipelineAssembly(configuration: configuration).withService {
        service, credentials in
        let token = try await credentials.provider.token()
        var lines = ["login: org \(token.organizationID) at \(token.instanceURL)"]
        for topic in configuration.source.topics {
          _ = try await service.subscribableTopic(topic.name, credentials)
          lines.append("topic: \(topic.name) can be subscribed to")
        }
        if configuration.namesColumns { lines.append(try await Self.columns(configuration)) }
        return lines
      }
    } catch {
      let failure = RunFailure(error)
      throw Failure(exitCode: failure.exitCode, message: failure.message)
    }
  }
}

extension ConnectionCheck {
  /// A line about the columns that stages and `column_types` name.
  private static func columns(_ configuration: PipelineConfiguration) async throws -> String {
    let planned = try await PlannedLayouts.ask(configuration)
    let check = try ColumnCheck(
      RunStages(configuration), planned, earlier: configuration.matchedColumns)
    var parts = check.warnings
    if !check.unknown.isEmpty {
      parts.append(
        "those of \(check.unknown.joined(separator: ", ")) are not known before events come")
    }
    return "columns: "
      + (parts.isEmpty ? "every name is in a schema" : parts.joined(separator: "; "))
  }
}

extension ConnectionCheck {
  /// Connects to the database of every postgres sink; a line for each. Makes nothing there.
  static func askDatabases(
    _ configuration: PipelineConfiguration
  ) throws(Failure) -> [String] {
    var lines: [String] = []
    for settings in configuration.postgresSinks {
      let schema = settings.sink.schema
      do {
        let probe = try DatabaseProbe(settings.sink)
        if probe.isReadOnly {
          throw RunFailure(
            .refused, reason: "database_refused",
            "database \(probe.database) takes no changes: a standby, or a role or database set to "
              + "default_transaction_read_only; name the primary in url")
        }
        guard probe.mayCreate || probe.hasBookkeeping else {
          let remedy =
            probe.hasSchema
            ? "GRANT USAGE, CREATE ON SCHEMA \"\(schema)\" TO \"\(probe.role)\""
            : "CREATE SCHEMA \"\(schema)\" AUTHORIZATION \"\(probe.role)\""
          throw RunFailure(
            .refused, reason: "database_refused",
            "role \(probe.role) may not make tables in schema \(schema) of \(probe.database); let "
              + "its owner execute \(remedy)")
        }
        guard probe.missingGrants.isEmpty else {
          throw RunFailure(
            .refused, reason: "database_refused",
            "role \(probe.role) lacks privileges in schema \(schema) of \(probe.database); let "
              + "its owner execute \(probe.missingGrants.joined(separator: "; "))")
        }
        // Tables that are there are enough for the objects and fields of today.
        let isFixed = !probe.mayCreate && settings.sink.contract == .evolve
        lines.append(
          "sink \(settings.name): PostgreSQL \(probe.serverVersion), database \(probe.database) as "
            + "\(probe.role), schema \(schema)"
            + (probe.hasSchema ? "" : " will be made")
            + (isFixed ? "; a new object or field needs the owner ('plan' prints what)" : ""))
        for finding in try probe.tables(configuration.feeder(settings)) {
          guard finding.disposition == nil else {
            throw PostgresError(finding.disposition ?? .configuration, finding.message)
          }
          lines.append("sink \(settings.name): \(finding.message)")
        }
      } catch {
        let failure = RunFailure(error)
        throw Failure(
          exitCode: failure.exitCode, message: "sink '\(settings.name)': \(failure.message)")
      }
    }
    return lines
  }
}

extension PubSubClient {
  /// What the service knows of a topic. Throws when nobody may subscribe to it by this login.
  func subscribableTopic(
    _ name: String, _ credentials: OrgCredentials
  ) async throws -> TopicInformation {
    let found = try await self.topic(named: name, credentials: try await credentials.credentials())
    guard found.canSubscribe else {
      throw RunFailure(
        .refused, reason: "cannot_subscribe",
        "\(name): the run-as user may not subscribe; it needs View All on the object")
    }
    return found
  }
}
