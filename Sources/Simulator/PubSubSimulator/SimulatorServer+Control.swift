internal import Foundation
package import SimulatedOrg

/// What tests and the control endpoint do to a running server. All of it runs on the event loop.
extension SimulatorServer {
  /// Publishes generated events now, in slices, and returns when all are in the log and the truth.
  ///
  /// - Parameter topic: only for objects of this topic.
  package func publish(_ count: Int, topic: String? = nil) async throws {
    var left = count
    while left > 0 {
      let slice = min(left, Self.slice)
      try await self.onLoop { server in
        if let topic, server.org.log.topics[topic] == nil {
          throw SimulatorError(.configuration, "unknown topic '\(topic)'")
        }
        try server.org.publish(slice, topic: topic)
      }
      left -= slice
    }
  }

  /// Moves the clock; keepalives, the 60 s rule and retention see it at once.
  package func advanceClock(byMilliseconds milliseconds: Int64) async throws {
    try await self.onLoop { server in
      try server.org.advanceClock(byMilliseconds: milliseconds)
      server.tickConnections()
    }
  }

  /// Epoch milliseconds of the org's clock.
  package var now: Int64 { self.clock.now }

  /// All access tokens stop working.
  package func revokeTokens() { self.tokens.revokeAll() }

  /// The fault waits for calls that begin later.
  package func add(_ fault: Fault) async throws {
    try await self.onLoop { $0.org.faults.add(fault) }
  }

  /// The fault waits for calls of the REST API that begin later.
  package func add(_ fault: RESTFault) async throws {
    try await self.onLoop { $0.org.dataAPI?.add(fault) }
  }

  package func removeFaults() async throws {
    try await self.onLoop {
      $0.org.faults.removeAll()
      $0.org.dataAPI?.removeFaults()
    }
  }

  /// Adds all of them or, where one cannot happen in this org, none.
  package func add(_ faults: [ScriptedFault]) async throws {
    try await self.onLoop { server in
      if server.org.dataAPI == nil, faults.contains(where: \.isOfREST) {
        throw SimulatorError(
          .configuration, "faults of REST calls need an org with records (--existing)")
      }
      for fault in faults {
        switch fault {
        case .service(let fault): server.org.faults.add(fault)
        case .rest(let fault): server.org.dataAPI?.add(fault)
        }
      }
    }
  }

  /// One fault or an array of them as JSON, as `--fault` and the control interface take them.
  ///
  /// - Returns: how many there are.
  @discardableResult
  package func addFaults(json: String) async throws -> Int {
    let faults = try ScriptedFault.read(json)
    try await self.add(faults)
    return faults.count
  }

  /// Writes what the org holds.
  package func writeState(to path: String) async throws {
    try await self.onLoop { try $0.org.writeState(to: path) }
  }

  /// Writes what the org holds into the simulator's own folder.
  ///
  /// - Parameter name: of the file, without a folder.
  /// - Returns: its path.
  func writeState(named name: String) async throws -> String {
    guard !name.isEmpty, !name.hasPrefix("."), name.utf8.count <= 200,
      name.unicodeScalars.allSatisfy({ $0 != "/" && $0.value >= 0x20 })
    else {
      throw SimulatorError(
        .configuration, "the body must be a file name without a folder, for example state.ndjson")
    }
    let path = "\(try self.statesDirectory())/\(name)"
    try await self.writeState(to: path)
    return path
  }

  /// From now on, new events use the newest versions of the schemas.
  package func changeSchemas() async throws {
    try await self.onLoop { try $0.org.changeSchemas() }
  }

  /// Classifies a field, as an admin does in Setup.
  package func classify(_ entry: DataClassification.Entry) async throws {
    try await self.onLoop { $0.org.classification.set(entry) }
  }

  /// Changes a field, as an admin does in Setup.
  package func change(_ change: FieldChange) async throws {
    try await self.onLoop { try $0.org.change(change) }
  }

  /// `{"total":N,"clients":[{"client":…,"topic":…,"events":N,"responses":N}]}`; a client is its
  /// `user-agent`.
  package func deliveredJSON() async throws -> String {
    try await self.onLoop { $0.org.deliveries.json }
  }

  /// `{"now":ms,"published":N,"delivered":N,"connections":N,"streams":N,"most_streams":N,"logins":N,
  /// "refused_logins":N,"faults":N,"calls":{"GetSchema":N,…},
  /// "topics":{"/data/…":{"events":N,"retained":N,"first_replay_id":hex|null,"last_replay_id":hex|null}}}`
  package func statsJSON() async throws -> String {
    try await self.onLoop { server in
      let now = server.clock.now
      let topics = server.org.log.topicNames.compactMap { name -> String? in
        guard let log = server.org.log.topics[name] else { return nil }
        func hex(_ entry: TopicLog.Entry?) -> String {
          guard let entry else { return "null" }
          var text: [UInt8] = []
          JSONText.appendHex(entry.replayNumber, to: &text)
          return "\"" + String(decoding: text, as: UTF8.self) + "0000\""
        }
        let first = log.firstRetained(at: now)
        let oldest = first < log.entries.count ? log.entries[first] : nil
        return "\(JSONText.string(name)):{\"events\":\(log.entries.count),"
          + "\"retained\":\(log.entries.count - first),\"first_replay_id\":\(hex(oldest)),"
          + "\"last_replay_id\":\(hex(log.entries.last))}"
      }
      let (logins, refusals) = server.tokens.counts
      let calls = server.org.calls.sorted { $0.key < $1.key }.map { method, count in
        "\(JSONText.string(method)):\(count)"
      }
      return "{\"now\":\(now),\"published\":\(server.org.publisher.published),"
        + "\"delivered\":\(server.org.deliveries.total),"
        + "\"connections\":\(server.connectionCount),"
        + "\"streams\":\(server.org.openStreams),"
        + "\"most_streams\":\(server.org.mostOpenStreams),"
        + "\"logins\":\(logins),\"refused_logins\":\(refusals),"
        + "\"faults\":\(server.org.faults.count),"
        + "\"api_calls\":\(server.org.dataAPI?.callCount ?? 0),"
        + "\"calls\":{\(calls.joined(separator: ","))},"
        + "\"bulk_jobs\":\(server.org.dataAPI?.jobs.createdCount ?? 0),"
        + "\"topics\":{\(topics.joined(separator: ","))}}"
    }
  }

  func takeFault(method: String) async -> Fault? {
    try? await self.onLoop { server in
      server.org.faults.take(FaultQueue.Call(method: method, at: server.clock.now))
    }
  }
}
