internal import Checkpoint
import Clocks
import PubSubAPI
import SalesforceAuth

extension ConnectionCheck {
  /// Logs in and asks the service for every topic; one line for each thing that works. Subscribes
  /// to nothing, so no deliveries are counted.
  static func askService(
    _ configuration: PipelineConfiguration
  ) async throws(Failure) -> [String] {
    do {
      return try await Session.open(configuration, clock: ProcessClock()) { session in
        try OrgChange.check(
          try FileCheckpointStore.peek(configuration.statePaths), isOf: session.org)
        var lines = ["login: org \(session.org) at \(session.token.instanceURL)"]
        lines += try await Self.topics(configuration.source.topics.map(\.name)) { name in
          _ = try await session.connection.subscribableTopic(name)
        }
        if let record = configuration.source.managed,
          let topic = configuration.source.topics.first
        {
          lines.append(try await Self.managed(record, topic: topic.name, session))
        }
        lines.append(await AllowanceWatch.line(session))
        lines += try await SnapshotRun.check(session)
        lines += try await Self.personAccounts(session)
        lines.append(await Self.rights(session))
        if configuration.namesColumns || session.inquiry != nil {
          lines.append(try await Self.columns(session))
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
  static func columns(_ session: Session) async throws -> String {
    let planned = try await session.plannedLayouts()
    let check = try ColumnCheck(
      session.stages, planned, earlier: session.configuration.matchedColumns)
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
    for case let sink as any ConnectingSink in configuration.sinks {
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

extension OrgConnection {
  /// What the service says about a topic. Throws if this login may not subscribe to it.
  func subscribableTopic(_ name: String) async throws -> TopicInformation {
    let found = try await self.service.topic(
      named: name, credentials: try await self.credentials.credentials())
    guard found.canSubscribe else {
      throw RunFailure(
        .cannotSubscribe,
        "\(name): the run-as user is not allowed to subscribe; grant it View All on the object")
    }
    return found
  }
}
