import ArgumentParser
import Clocks
import Pipeline
import RESTSource
import SalesforceREST

/// `pubsub-etl plan FILE`: the statements that a run would execute to make tables fit, and the columns that
/// it would mask.
struct PlanCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "plan",
    abstract:
      "Prints the columns that a run would mask, and the DDL that it would execute. Changes nothing.",
    discussion: """
      Logs in, gets the current schema of every topic, compares it with the tables, and prints \
      SQL for psql on standard output. Remarks go to standard error: fields that a copy cannot have, \
      and views that lack new values or will lack them after the next run. Columns that the stage 'mask' hides come first, as comments of SQL: object, \
      column, method, stage, and whether the file names the column or the org classifies it. With contract freeze, these are the statements to run before the next \
      run. Events from before a schema change may need more columns, and the schemas of a channel's \
      events are not known until they arrive.
      Exit codes: 0 printed, whatever is missing; 64 command line, or neither a \
      postgres sink nor a mask; 65 a \
      schema that no event can have; 69 service or database unavailable; 74 standard output; 77 \
      login, topic or database refused; 78 mistakes in the file, or tables that do not fit.

      EXAMPLES:
        pubsub-etl plan opps.json                             what a run masks
        pubsub-etl plan opps-postgres.json | psql -1 "$URL"   make the tables
      """)

  @OptionGroup var options: PipelineOptions

  func run() async throws {
    let configuration = try self.options.loadOrExit()
    let secrets = configuration.secrets
    do {
      let sinks = configuration.sinks.compactMap { $0 as? any PlanningSink }
      guard !sinks.isEmpty || configuration.masksColumns else {
        throw RunFailure(
          .noDatabase,
          "pipeline '\(configuration.name)' has no postgres sink and no stage 'mask'; only databases and "
            + "masks need a plan")
      }
      try await Session.open(configuration, clock: ProcessClock()) { session in
        try await self.plan(sinks, session)
      }
    } catch {
      throw RunFailure(error).reported(hiding: secrets)
    }
  }

  private func plan(_ sinks: [any PlanningSink], _ session: Session) async throws {
    let (configuration, stages) = (session.configuration, session.stages)
    let secrets = configuration.secrets
    let planned = try await session.plannedLayouts()
    _ = try ColumnCheck(
      stages, planned, earlier: configuration.matchedColumns)
    for topic in planned.unknown {
      StandardStream.tell(
        PrintableText(
          line:
            "\(topic): a channel; the schemas of its events, and so their tables, are not "
            + "known until events arrive", hiding: secrets))
    }
    for line in await self.blindFields(session, planned) {
      StandardStream.tell(PrintableText(line: line, hiding: secrets))
    }
    try Self.print(
      maskedBy: stages, planned.inputs, secrets, hasMask: configuration.masksColumns)
    for sink in sinks {
      let plan = try sink.plan(
        planned.layouts, through: stages.chain(of: sink), configuration)
      try StandardStream.print(PrintableText(sql: plan.text, hiding: secrets))
      for line in plan.consequences {
        StandardStream.tell(PrintableText(line: line, hiding: secrets))
      }
    }
  }

  /// `-- mask: Contact.Email: redact by stages[1], classified compliance PII`
  private static func print(
    maskedBy stages: RunStages, _ layouts: [RecordLayout], _ secrets: SecretMask, hasMask: Bool
  ) throws {
    guard hasMask else { return }
    var seen: Set<String> = []
    for layout in layouts {
      let lines = try stages.maskedColumns(of: layout)
      for line in lines where seen.insert(line).inserted {
        try StandardStream.print(PrintableText(line: "-- mask: \(line)", hiding: secrets))
      }
      if lines.isEmpty {
        try StandardStream.print(
          PrintableText(line: "-- mask: \(layout.entity): no column", hiding: secrets))
      }
    }
  }

  /// Fields that the copies of objects cannot have, in lines. The plan is printed even if they cannot be
  /// named.
  private func blindFields(
    _ session: Session, _ planned: PlannedLayouts
  ) async -> [String] {
    let configuration = session.configuration
    guard configuration.source.snapshot.mode != .never else { return [] }
    let client = session.connection.makeRESTClient()
    var lines: [String] = []
    for (entity, _) in configuration.source.snapshotObjects {
      guard let layout = planned.inputs.first(where: { $0.entity == entity }) else { continue }
      do {
        lines += BlindFields(layout, try await client.describe(entity)).lines(of: entity)
      } catch {
        lines.append(
          "\(entity): fields that a copy cannot have are not known: \(RunFailure(error).message)")
      }
    }
    return lines
  }
}
