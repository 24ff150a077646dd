internal import Checkpoint
import PubSubAPI
import SalesforceAuth

extension ConnectionCheck {
  /// Logs in and asks the service for every topic; one line for each thing that works. Subscribes
  /// to nothing, so no deliveries are counted.
  static func askService(
    _ configuration: PipelineConfiguration
  ) async throws(Failure) -> [String] {
    do {
      let assembly = PipelineAssembly(configuration: configuration)
      return try await assembly.withService { service, credentials in
        let token = try await credentials.provider.token()
        try OrgChange.check(
          try FileCheckpointStore.peek(configuration.statePaths), isOf: token.organizationID)
        var lines = ["login: org \(token.organizationID) at \(token.instanceURL)"]
        lines += try await Self.topics(configuration.source.topics.map(\.name)) { name in
          _ = try await service.subscribableTopic(name, credentials)
        }
        if let record = configuration.source.managed,
          let topic = configuration.source.topics.first
        {
          lines.append(try await Self.managed(record, topic: topic.name, credentials))
        }
        lines.append(await AllowanceWatch.line(configuration, credentials))
        lines += try await SnapshotRun.check(
          configuration, credentials, assembly.schemas(ofOrg: token.organizationID))
        lines += try await Self.personAccounts(
          configuration, service, credentials, assembly.schemas(ofOrg: token.organizationID))
        lines.append(await Self.rights(configuration, credentials))
        if configuration.namesColumns || !configuration.classificationSelectors.isEmpty {
          lines.append(try await Self.columns(configuration))
        }
        return lines
      }
    } catch let failure as Failure {
      throw failure
    } catch {
      let failure = RunFailure(error)
      throw Failure(exitCode: failure.exitCode, message: failure.message)
    }
  }

  /// Asks for each topic, also after one that is refused; a line for each.
  ///
  /// - Throws: `Failure` with the messages of all that cannot be subscribed to.
  static func topics(
    _ names: [String], _ ask: (String) async throws -> Void
  ) async throws(Failure) -> [String] {
    var failures: [RunFailure] = []
    for name in names {
      do { try await ask(name) } catch {
        failures.append(RunFailure(error))
        // Nothing else would be answered either.
        let isOfTopicAlone =
          (error as? PubSubError)?.refusesTopicAlone ?? (error is RunFailure)
        if !isOfTopicAlone { break }
      }
    }
    if let failure = Failure(failures) { throw failure }
    return names.map { "topic: \($0) can be subscribed to" }
  }
}

extension ConnectionCheck {
  /// A line about the columns that stages and `column_types` name.
  private static func columns(_ configuration: PipelineConfiguration) async throws -> String {
    let planned = try await PlannedLayouts.ask(configuration)
    let check = try ColumnCheck(
      RunStages(configuration, org: "", classification: planned.classification), planned,
      earlier: configuration.matchedColumns)
    var parts = check.warnings
    if !check.unknown.isEmpty {
      parts.append(
        "the columns of \(check.unknown.joined(separator: ", ")) are not known until events arrive")
    }
    return "columns: "
      + (parts.isEmpty ? "every name was found in a schema" : parts.joined(separator: "; "))
  }
}

extension ConnectionCheck {
  /// Connects to every sink that needs a connection, also after one that fails; one line for each.
  /// Creates nothing there.
  ///
  /// - Throws: `Failure` with the messages of all that failed.
  static func askSinks(_ configuration: PipelineConfiguration) throws(Failure) -> [String] {
    var lines: [String] = []
    var failures: [RunFailure] = []
    for sink in configuration.sinks {
      do {
        lines += try sink.checkConnection(configuration)
      } catch {
        var failure = RunFailure(error)
        failure.message = "sink '\(sink.name)': \(failure.message)"
        failures.append(failure)
      }
    }
    if let failure = Failure(failures) { throw failure }
    return lines
  }
}

extension PubSubClient {
  /// What the service says about a topic. Throws if this login may not subscribe to it.
  func subscribableTopic(
    _ name: String, _ credentials: OrgCredentials
  ) async throws -> TopicInformation {
    let found = try await self.topic(named: name, credentials: try await credentials.credentials())
    guard found.canSubscribe else {
      throw RunFailure(
        .cannotSubscribe,
        "\(name): the run-as user is not allowed to subscribe; grant it View All on the object")
    }
    return found
  }
}
