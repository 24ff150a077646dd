import PostgresClient
import PostgresSink

extension PostgresSettings {
  func checkConnection(_ configuration: PipelineConfiguration) throws -> [String] {
    var lines: [String] = []
    let schema = self.sink.schema
    let probe = try DatabaseProbe(self.sink)
    if probe.isReadOnly {
      throw RunFailure(
        .refused, reason: "database_refused",
        "database \(probe.database) is read-only: it is a standby, or "
          + "default_transaction_read_only is set for the role or database; use the primary in "
          + "url")
    }
    guard probe.mayCreate || probe.hasBookkeeping else {
      let remedy =
        probe.hasSchema
        ? "GRANT USAGE, CREATE ON SCHEMA \"\(schema)\" TO \"\(probe.role)\""
        : "CREATE SCHEMA \"\(schema)\" AUTHORIZATION \"\(probe.role)\""
      throw RunFailure(
        .refused, reason: "database_refused",
        "role \(probe.role) is not allowed to create tables in schema \(schema) of "
          + "\(probe.database); ask the owner to run \(remedy)")
    }
    guard probe.missingGrants.isEmpty else {
      throw RunFailure(
        .refused, reason: "database_refused",
        "role \(probe.role) lacks privileges in schema \(schema) of \(probe.database); ask the "
          + "owner to run \(probe.missingGrants.joined(separator: "; "))")
    }
    // Tables that are there are enough for the objects and fields of today.
    let isFixed = !probe.mayCreate && self.sink.contract == .evolve
    lines.append(
      "sink \(self.name): PostgreSQL \(probe.serverVersion), database \(probe.database) as "
        + "\(probe.role), schema \(schema)"
        + (probe.hasSchema ? "" : " will be created")
        + (isFixed
          ? "; only its owner can add new objects or fields ('plan' prints the statements)" : ""))
    for finding in try probe.tables(configuration.feeder(self)) {
      guard finding.disposition == nil else {
        throw PostgresError(finding.disposition ?? .configuration, finding.message)
      }
      lines.append("sink \(self.name): \(finding.message)")
    }
    return lines
  }
}
