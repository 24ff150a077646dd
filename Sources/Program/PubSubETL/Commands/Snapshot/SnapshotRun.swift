internal import Clocks
import Logging
import Pipeline
import PubSubAPI
import PubSubSource
import RESTSource
import SalesforceAuth
import SalesforceREST

/// What a run reads over REST and Bulk in addition to its streams.
struct SnapshotRun {
  let reader: SnapshotReader
  let client: RESTClient

  /// Fetches the schemas of the objects that some sink still needs to read.
  ///
  /// - Parameters:
  ///   - sinks: the open sinks.
  ///   - files: the store of the sinks whose state the checkpoint holds.
  ///   - follows: the run continues until it is stopped, so attempts have no limit.
  /// - Returns: nil if there is nothing to read.
  static func make(
    _ session: Session, sinks: OpenSinks, files: CheckpointedStore, purpose: RunPurpose,
    follows: Bool, logger: Logger, wake: @escaping @Sendable () -> Void,
    onRetry: (PubSubError, Duration) throws -> Void
  ) async throws -> SnapshotRun? {
    let (configuration, source) = (session.configuration, session.configuration.source)
    var wanted: [Wanted] = []
    let client = session.connection.makeRESTClient()
    for (entity, topic) in source.snapshotObjects {
      var object = Wanted(entity: entity, topic: topic)
      for store in sinks.copies {
        try object.add(store, configuration, purpose, follows: follows)
      }
      if sinks.checkpointed.contains(where: { $0.sink is any RecordReceiver }) {
        try object.add(files, configuration, purpose)
      }
      wanted.append(object)
    }
    var columns = ColumnInquiry(configuration, client, session.stages)
    try await columns.ask(&wanted, sinks, purpose, logger)
    wanted.removeAll(where: \.isEmpty)
    if source.snapshot.mode == nil, !purpose.isSnapshot, !sinks.copies.allSatisfy(\.beganWithReads)
    {
      logger.notice(
        """
        records from before the first event are not read into tables that were there already; \
        '\(configuration.command("snapshot"))' reads them
        """)
    }
    guard !wanted.isEmpty else { return nil }
    let topics = wanted.map { (entity: $0.entity, topic: $0.topic) }
    var layouts = try await session.layouts(of: topics, onRetry: onRetry)
    try await session.renew(
      &layouts, described: columns.described, objects: topics, onRetry: onRetry)
    try await session.inquiry?.prepare(Array(layouts.values))
    for object in wanted where layouts[object.entity] == nil {
      logger.warning(
        """
        records of \(object.entity) are not read: the service does not give the schema of \
        \(TopicName.changes(of: object.entity)); select the object under Change Data Capture, or \
        leave it out of source.snapshot.objects
        """)
    }
    for (index, object) in wanted.enumerated() {
      guard let layout = layouts[object.entity] else { continue }
      try wanted[index].review(
        files, configuration, purpose, session.stages.pipeline.layout(for: layout))
    }
    let objects = wanted.flatMap { object in
      layouts[object.entity].map { object.reads($0, condition: purpose.condition) } ?? []
    }
    guard !objects.isEmpty else { return nil }
    try await columns.askFirst(layouts, sinks, logger)
    if let condition = purpose.condition {
      for object in objects { try await client.check(condition, on: object.entity) }
    }
    for store in sinks.copies {
      for object in objects
      where try object.initial.contains(store.name)
        && session.stages.bringsRows(of: object.layout, to: store.name)
      {
        try store.awaitReads(of: object.entity)
      }
    }
    var options = SnapshotReader.Options()
    options.concurrency = source.snapshot.concurrency
    options.retry = session.retry
    options.reserve = Double(configuration.repair.reserve) / 100
    options.maxRepairCalls = configuration.repair.maxCalls
    for store in sinks.copies { options.repairCallsMade += try store.repairCallsOfDay() }
    return SnapshotRun(
      reader: SnapshotReader(objects, client: client, options: options, wake: wake),
      client: client)
  }
}

extension SnapshotRun {
  /// Lines for `check` about what the run-as user can read of each object, and which fields a copy
  /// cannot have. Two calls per object.
  static func check(_ session: Session) async throws -> [String] {
    let configuration = session.configuration
    let mode = configuration.source.snapshot.mode
    guard mode != .never,
      configuration.sinks.contains(where: { mode == nil ? $0.keepsPosition : $0.takesReads })
    else { return [] }
    let client = session.connection.makeRESTClient()
    let objects = configuration.source.snapshotObjects
    let layouts = try await session.layouts(
      of: objects, retry: RetrySchedule(giveUpAfter: .zero)
    ) { _, _ in }
    var lines: [String] = []
    for (entity, _) in objects {
      do {
        let object = try await client.describe(entity)
        let count = try await client.count(entity)
        lines.append(
          "records: \(entity), \(Phrase.count(count, "record")) and "
            + "\(Phrase.count(object.fields.count, "field")) can be read")
        if let layout = layouts[entity] {
          lines += BlindFields(layout, object).lines(of: entity).map { "note: \($0)" }
        }
      } catch let error as RESTError {
        throw RunFailure(
          word: "snapshot_\(error.disposition.rawValue)", code: RunFailure(error).exitCode,
          "the records of \(entity) cannot be read: \(error.message). To export changes only, set "
            + "\"snapshot\": {\"mode\": \"never\"} in source")
      }
    }
    return lines
  }
}

extension RESTClient {
  /// - Throws: `RunFailure` if the org rejects the SOQL condition. Checked before the wait for the
  ///   records.
  fileprivate func check(_ condition: String, on entity: String) async throws {
    do {
      _ = try await self.count(entity, where: "(\(condition))")
    } catch let error as RESTError {
      switch error.disposition {
      case .describe, .stop, .bug:
        throw RunFailure(
          .refusedCondition,
          "the org refuses --where \"\(condition)\" for \(entity): \(error.message)")
      case .login, .quota, .configuration: throw error
      // Counting may take longer than reading, and a failure may be temporary.
      case .retry, .split, .gone, .unsupportedByBulk, .tooWide: return
      }
    }
  }
}
