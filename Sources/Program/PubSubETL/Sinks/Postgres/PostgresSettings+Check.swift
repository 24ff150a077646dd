import PostgresClient
import PostgresSink

extension PostgresSettings {
  func checkConnection(_ configuration: PipelineConfiguration) throws -> [String] {
    var lines: [String] = []
    let schema = self.sink.schema
    let probe = try DatabaseProbe(self.sink)
    if probe.isReadOnly {
      throw RunFailure(
        .databaseRefused,
        "database \(probe.database) is read-only: the server is a standby, or is configured so; use "
          + "the primary in url")
    }
    if let concern = probe.encodingConcern {
      // As a run does.
      guard probe.hasBookkeeping else { throw DatabaseEncoding.refusal(concern) }
      lines.append("sink \(self.name): \(concern)")
    }
    if let obstacle = probe.obstacle {
      throw RunFailure(.databaseRefused, obstacle)
    }
    // Tables that are there are enough for the objects and fields of today.
    let isFixed = !probe.mayCreate && self.sink.contract == .evolve
    lines.append(
      "sink \(self.name): PostgreSQL \(probe.serverVersion), database \(probe.database) as "
        + "\(probe.role), schema \(schema)"
        + (probe.hasSchema ? "" : " will be created")
        + (probe.namesakeHint.isEmpty ? "" : ". \(probe.namesakeHint)")
        + (isFixed
          ? "; only its owner can add new objects or fields ('plan' prints the statements)" : ""))
    if let ownership = probe.ownershipRemedy, probe.mayCreate, self.sink.contract == .evolve {
      lines.append("sink \(self.name): new fields cannot be added. \(ownership)")
    }
    for finding in try probe.tables(configuration.feeder(self)) {
      guard finding.disposition == nil else {
        throw PostgresError(finding.disposition ?? .configuration, finding.message)
      }
      lines += PipelineStatus.lines(
        "sink \(self.name): \(finding.message)", with: finding.statements)
    }
    return lines
  }
}
