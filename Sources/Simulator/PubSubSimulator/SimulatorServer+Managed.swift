internal import Foundation
internal import SimulatedOrg

/// The managed subscriptions of the org, as Setup and other clients change them.
extension SimulatorServer {
  /// What may be changed of one.
  static let managedKeys: Set<String> = [
    "name", "topic", "default", "recovery", "state", "position", "fail", "delay",
  ]

  /// Adds a managed subscription, or changes the one of this name.
  ///
  /// `name`; `topic`, needed for a new one; `default` and `recovery`: earliest or latest; `state`: RUN
  /// or STOP; `position`: hexadecimal digits of a replay ID, `none`, or `+N`/`-N` for as many events
  /// ahead of or behind the one that is stored; `fail`: how many commits are refused; `delay`:
  /// milliseconds before commits are answered, all in one answer.
  package func setManaged(_ values: [String: String]) async throws {
    try await self.onLoop { server in
      func refuse(_ key: String, _ expected: String) -> SimulatorError {
        SimulatorError(.configuration, "\(key)=\(values[key] ?? ""): expected \(expected)")
      }
      if let unknown = values.keys.first(where: { !Self.managedKeys.contains($0) }) {
        throw SimulatorError(
          .configuration,
          "\(unknown)= is unknown; known: \(Self.managedKeys.sorted().joined(separator: ", "))")
      }
      guard let name = values["name"], !name.isEmpty else {
        throw SimulatorError(.configuration, "name=<developer name> is needed")
      }
      if let topic = values["topic"], server.org.log.topics[topic] == nil {
        throw SimulatorError(.configuration, "unknown topic '\(topic)'")
      }
      func preset(_ key: String) throws -> ReplayPreset? {
        switch values[key] {
        case nil: nil
        case "earliest"?: .earliest
        case "latest"?: .latest
        default: throw refuse(key, "earliest or latest")
        }
      }
      func number(_ key: String) throws -> Int? {
        guard let text = values[key] else { return nil }
        guard let number = Int(text), number >= 0 else { throw refuse(key, "a number") }
        return number
      }
      let (start, recovery) = (try preset("default"), try preset("recovery"))
      let (refusals, delay) = (try number("fail"), try number("delay"))
      if let state = values["state"], !["RUN", "STOP"].contains(state) {
        throw refuse("state", "RUN or STOP")
      }
      let known = server.org.managed.records.first { $0.developerName == name }
      var committed = known?.committed
      if let position = values["position"] {
        guard let log = server.org.log.topics[values["topic"] ?? known?.topic ?? ""],
          let moved = Self.position(position, from: committed, in: log)
        else { throw refuse("position", "a replay ID, none, +N or -N") }
        committed = moved.isEmpty ? nil : moved
      }
      try server.org.managed.set(name, topic: values["topic"]) { record in
        record.defaultReplay = start ?? record.defaultReplay
        record.errorRecoveryReplay = recovery ?? record.errorRecoveryReplay
        if let state = values["state"] { record.isRunning = state == "RUN" }
        record.refusals = refusals ?? record.refusals
        record.answerDelay = delay ?? record.answerDelay
        record.committed = committed
      }
    }
  }

  /// - Returns: empty for none; nil if it is not a position.
  private static func position(
    _ text: String, from committed: [UInt8]?, in log: TopicLog
  ) -> [UInt8]? {
    if text == "none" { return [] }
    if let steps = Int(text), text.hasPrefix("+") || text.hasPrefix("-") {
      let stored = committed ?? []
      let index =
        log.entries.firstIndex { ReplayPosition.bytes($0.replayNumber) == stored }
        ?? (stored.isEmpty ? -1 : log.entries.count - 1)
      let moved = min(max(index + steps, 0), log.entries.count - 1)
      return log.entries.isEmpty ? nil : ReplayPosition.bytes(log.entries[moved].replayNumber)
    }
    guard text.utf8.count == 20 else { return nil }
    var bytes: [UInt8] = []
    var rest = Substring(text)
    while !rest.isEmpty {
      guard let byte = UInt8(rest.prefix(2), radix: 16) else { return nil }
      bytes.append(byte)
      rest = rest.dropFirst(2)
    }
    return bytes
  }

  /// `{"NAME":{"id":…,"topic":…,"position":hex|null,"commits":N,"active":bool}}`
  package func managedJSON() async throws -> String {
    try await self.onLoop { server in
      let records = server.org.managed.records.map { record -> String in
        let position = record.committed.map { bytes in
          "\"" + bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
            + "\""
        }
        return "\(JSONText.string(record.developerName)):{\"id\":\(JSONText.string(record.id)),"
          + "\"topic\":\(JSONText.string(record.topic)),\"position\":\(position ?? "null"),"
          + "\"commits\":\(record.commitCount),\"active\":\(record.isActive)}"
      }
      return "{\(records.joined(separator: ","))}"
    }
  }
}
