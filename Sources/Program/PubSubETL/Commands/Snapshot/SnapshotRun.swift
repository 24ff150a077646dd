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
        try object.add(files, configuration, purpose, follows: follows)
      }
      wanted.append(object)
    }
    let polled = try await Self.polled(session, sinks, files, purpose, logger, onRetry)
    var columns = ColumnInquiry(configuration, client, session.stages)
    let readFiles =
      sinks.checkpointed.contains { $0.sink is any RecordReceiver } ? files : nil
    try await columns.ask(&wanted, sinks, readFiles, purpose, logger)
    wanted.removeAll(where: \.isEmpty)
    var refreshes = try Self.refreshes(session, sinks, readFiles, purpose, follows: follows)
    if source.snapshot.mode == nil, !purpose.isSnapshot, !sinks.copies.allSatisfy(\.beganWithReads)
    {
      logger.notice(
        """
        records from before the first event are not read into tables that were there already; \
        '\(configuration.command("snapshot"))' reads them
        """)
    }
    guard !wanted.isEmpty || !polled.objects.isEmpty || !refreshes.isEmpty else { return nil }
    var topics = wanted.map { (entity: $0.entity, topic: $0.topic) }
    for refresh in refreshes where !topics.contains(where: { $0.entity == refresh.entity }) {
      topics.append((refresh.entity, refresh.topic))
    }
    var layouts = try await session.layouts(of: topics, onRetry: onRetry)
    try await session.renew(
      &layouts, described: columns.described, objects: topics, onRetry: onRetry)
    try await session.addOnlyRead(
      to: &layouts, described: columns.described, onRetry: onRetry
    ) { entity, reason in
      logger.warning("fields of \(entity) are not refreshed in this run: \(reason)")
      refreshes.removeAll { $0.entity == entity }
    }
    try await session.inquiry?.prepare(Array(layouts.values))
    for (entity, _) in topics where layouts[entity] == nil {
      logger.warning(
        """
        records of \(entity) are not read: the service does not give the schema of \
        \(TopicName.changes(of: entity)); select the object under Change Data Capture, or \
        leave it out of source.snapshot.objects
        """)
    }
    for (index, object) in wanted.enumerated() {
      guard let layout = layouts[object.entity] else { continue }
      try wanted[index].review(
        files, configuration, purpose, session.stages.pipeline.layout(for: layout))
    }
    let streamed = wanted.flatMap { object in
      layouts[object.entity].map {
        object.reads($0, condition: purpose.condition, of: source)
      } ?? []
    }
    let refreshed = refreshes.compactMap { wanted in
      layouts[wanted.entity].map { layout in
        // An admin may hide or delete a field at any time, and the other data must still arrive.
        if let fault = wanted.refresh.fault(layout) {
          logger.warning("\(fault); the run continues without it")
        }
        return wanted.reads(layout, session.stages)
      }
    }
    let objects = streamed + polled.objects + refreshed
    guard !objects.isEmpty else { return nil }
    try await columns.askFirst(layouts, sinks, readFiles, logger)
    for object in streamed where !object.initial.isEmpty || !object.anew.isEmpty {
      if let condition = object.condition {
        try await client.check(condition, of: "--where", on: object.entity)
      } else if object.filling == nil, let scope = source.scope(of: object.entity) {
        try await client.check(scope.condition, of: scope.key, on: object.entity)
      }
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
    options.serviceClock = await session.connection.credentials.serviceClock
    options.reserve = Double(configuration.repair.reserve) / 100
    options.maxRepairCalls = configuration.repair.maxCalls
    options.repairCallsMade = files.repairCallsOfDay()
    for store in sinks.copies { options.repairCallsMade += try store.repairCallsOfDay() }
    return SnapshotRun(
      reader: SnapshotReader(
        objects, client: client, options: options, described: polled.described, wake: wake),
      client: client)
  }

  /// The objects without change events, and their descriptions by name.
  private struct Polled {
    var objects: [ReadObject] = []
    var described: [String: ObjectDescription] = [:]
  }

  /// Describes the objects without change events, and notes in the databases what their fields are.
  private static func polled(
    _ session: Session, _ sinks: OpenSinks, _ files: CheckpointedStore, _ purpose: RunPurpose,
    _ logger: Logger, _ onRetry: (PubSubError, Duration) throws -> Void
  ) async throws -> Polled {
    let (configuration, lookups) = (session.configuration, session.configuration.source.lookups)
    var polled = Polled()
    // A run for the records of other objects, or for some of them, leaves these alone.
    guard !lookups.objects.isEmpty, !purpose.isSnapshot else { return polled }
    let described = try await session.polledObjects(onRetry: onRetry) { entity, reason in
      logger.warning("records of \(entity) are not read in this run: \(reason)")
    }
    try await session.inquiry?.prepare(described.map(\.layout))
    var stores = sinks.copies.map(\.name)
    if sinks.checkpointed.contains(where: { $0.sink is any RecordReceiver }) {
      stores.append(files.name)
    }
    let clock = session.assembly.clock
    let (now, wallTime) = (clock.now, clock.wallTime)
    for found in described {
      var poll = PollSchedule(
        every: lookups.every, fullEvery: lookups.fullEvery,
        fullSince: now - .milliseconds(wallTime - found.changedAt))
      // What was noted once stays true until the object is described again.
      let isNew = Duration.milliseconds(wallTime - found.describedAt) < lookups.every
      for store in sinks.copies {
        if try Self.note(found, isNew: isNew, in: store) { poll.fullSince = now }
      }
      // A run that was killed may not have written them.
      try files.noteDescriptions(found.fields, of: found.entity)
      var object = ReadObject(
        entity: found.entity, topic: found.layout.topic, layout: found.layout,
        initial: Set(stores), isRepaired: configuration.repair.mode == .auto)
      object.poll = poll
      polled.objects.append(object)
      polled.described[found.entity] = found.description
    }
    return polled
  }

  /// - Returns: whether rows of the store lack values of columns that can be read.
  private static func note(
    _ object: PolledObject, isNew: Bool, in store: any CopyStore
  ) throws -> Bool {
    let known = try store.fields(of: object.entity)
    // A run that was killed may have described the object and noted nothing.
    let isNew = isNew || known.isEmpty
    let access =
      isNew
      ? FieldAccess.known(
        known.isEmpty ? object.layout.fieldNames : known, in: object.description) : [:]
    let filling = try store.noteAccess(access, of: object.entity)
    if isNew {
      try store.noteDescriptions(object.fields, of: object.entity)
    }
    return !filling.isEmpty && store.pass(over: object.entity)?.state == .complete
  }
}

extension SnapshotRun {
  /// Lines for `check` about what the run-as user can read of each object, and which fields a copy
  /// cannot have. Two calls per object.
  static func check(_ session: Session) async throws -> [String] {
    let configuration = session.configuration
    let mode = configuration.source.snapshot.mode
    let lookups = try await Self.checkLookups(session)
    guard mode != .never || configuration.source.refresh != nil,
      configuration.sinks.contains(where: { mode == nil ? $0.keepsPosition : $0.takesReads })
    else { return lookups }
    let refreshes = configuration.source.refreshes
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
        if let scope = configuration.source.scope(of: entity) {
          try await client.check(scope.condition, of: scope.key, on: entity)
          let count = try await client.count(entity, where: "(\(scope.condition))")
          lines.append("records: \(entity), \(Phrase.count(count, "record")) meet \(scope.key)")
        }
        if var layout = layouts[entity] {
          let refresh = refreshes.first { $0.entity == entity }?.refresh
          if let refresh { layout = try session.layout(layout, with: refresh, of: object) }
          let blind = BlindFields(layout, object)
          lines += blind.lines(of: entity).map { "note: \($0)" }
          if let refresh {
            lines.append(try refresh.line(layout, blind))
          }
        }
      } catch let error as RESTError {
        throw RunFailure(
          word: "snapshot_\(error.disposition.rawValue)", code: RunFailure(error).exitCode,
          "the records of \(entity) cannot be read: \(error.message). To export changes only, set "
            + "\"snapshot\": {\"mode\": \"never\"} in source")
      }
    }
    return lines + lookups
  }

  /// Lines for `check` about the objects without change events. A topic of such an object shows that
  /// it has some after all.
  private static func checkLookups(_ session: Session) async throws -> [String] {
    var lines: [String] = []
    let found = try await session.polledObjects { entity, reason in
      lines.append("lookups: \(entity) cannot be read now: \(reason)")
    }
    for object in found {
      let count = object.layout.columns.count { !$0.isMetadata }
      lines.append("lookups: \(object.entity), \(Phrase.count(count, "field")) can be read")
      let topic = object.layout.topic
      guard let known = try? await session.connection.subscribableTopic(topic),
        !known.schemaID.isEmpty
      else { continue }
      lines.append(
        "note: \(object.entity) has change events: with \(topic) in source.topic, and without "
          + "\(object.entity) in source.lookups, every change comes at once")
    }
    return lines
  }
}

extension RESTClient {
  /// - Throws: `RunFailure` if the org rejects the SOQL condition, which is checked before the wait
  ///   for the records.
  fileprivate func check(_ condition: String, of key: String, on entity: String) async throws {
    do {
      _ = try await self.count(entity, where: "(\(condition))")
    } catch let error as RESTError {
      switch error.disposition {
      case .describe, .stop, .bug:
        throw RunFailure(
          .refusedCondition,
          "the org refuses \(key) \"\(condition)\" for \(entity): \(error.message)")
      case .login, .quota, .configuration: throw error
      // Counting may take longer than reading, and a failure may be temporary.
      case .retry, .split, .gone, .unsupportedByBulk, .tooWide: return
      }
    }
  }
}
