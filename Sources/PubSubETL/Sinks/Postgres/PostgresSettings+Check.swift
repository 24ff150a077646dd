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
    let isFixed = !probe.mayCreate && self.sink.contract == .evolve
    lines.append(
      "sink \(self.name): PostgreSQL \(probe.serverVersion), database \(probe.database) as "
        + "\(probe.role), schema \(schema)"
        + (probe.hasSchema ? "" : " will be made")
        + (isFixed ? "; a new object or field needs the owner ('plan' prints what)" : ""))
    for finding in try probe.tables(configuration.feeder(self)) {
      guard finding.disposition == nil else {
        throw PostgresError(finding.disposition ?? .configuration, finding.message)
      }
      lines.append("sink \(self.name): \(finding.message)")
    }
    return lines
  }
}
