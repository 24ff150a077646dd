internal import DurableFiles
internal import JSON
package import Pipeline

/// Keeps `_freshness.ndjson`, `_fields.ndjson` and `_picklist.ndjson` up to date.
extension FileSink: DescribedSink {
  package func describe(
    _ positions: [String: TopicPosition], lacking letters: () -> WaitingLetters, isLast: Bool
  ) throws {
    let now = self.clock.monotonic()
    guard self.freshness.isDue(at: now, self.store.finishedFileCount, isLast: isLast) else {
      return
    }
    do throws(FileSystemError) {
      try self.describe(positions, letters())
    } catch {
      guard FileSystemError.unusable.contains(error.code) else { throw error }
      // The data does not depend on it, and `complete_through` in it goes stale by itself.
      self.onOutdatedFreshness?(
        "\(ColumnCatalog.freshnessName) cannot be updated: \(error). The data is exported; only the "
          + "view _freshness is out of date. Make the file readable and writable, or move it away: "
          + "the next run creates it again")
      self.onOutdatedFreshness = nil
    }
    self.freshness.written(at: now, self.store.finishedFileCount)
    try self.writeDescriptions()
  }

  package func noteDescriptions(_ fields: [FieldDescription], of entity: String) {
    self.descriptions[entity] = fields
  }

  /// Writes what the org says about fields. A run does it once, because it asks once.
  private func writeDescriptions() throws(FileSystemError) {
    guard !self.descriptions.isEmpty else { return }
    do throws(FileSystemError) {
      let isWritten = try self.store.catalog.setFields(
        self.descriptions, at: self.clock.utcMilliseconds())
      if isWritten { self.descriptions.removeAll() }
    } catch {
      self.descriptions.removeAll()
      guard FileSystemError.unusable.contains(error.code) else { throw error }
      self.onOutdatedFreshness?(
        "_fields.ndjson or _picklist.ndjson cannot be updated: \(error). The data is exported; only "
          + "the views _fields and _picklist are out of date. Make the files readable and "
          + "writable, or move them away: the next run creates them again")
    }
  }

  private func describe(
    _ positions: [String: TopicPosition], _ letters: WaitingLetters
  ) throws(FileSystemError) {
    let catalog = self.store.catalog
    try self.freshness.load(from: catalog, self.history)
    let lines = self.freshness.lines(
      positions, unfinished: self.store.ledger.unfinished, polls: self.configuration.polls,
      deadLetters: { letters.count(of: $0, lackedBy: self.name, since: $1) })
    guard !lines.isEmpty else { return }
    try catalog.setFreshness(
      lines.map {
        $0.json(
          pipeline: self.configuration.pipeline, sink: self.name,
          lastRun: self.clock.utcMilliseconds(),
          selectsChanges: self.configuration.selectsChanges)
      })
  }
}

/// Collects what `_freshness.ndjson` says about the objects of a sink.
struct FreshnessLedger {
  /// By object.
  private var objects: [String: ObjectFreshness] = [:]
  private var isLoaded = false
  /// The passes and requested objects of the last flush, because what follows is not committed.
  private var passes: [String: FilePass] = [:]
  private var awaited: Set<String> = []
  /// Objects of which changes went elsewhere.
  private var leftOut: Set<String> = []
  /// The numbers of changed records that have not been read.
  private var changed: [String: Int] = [:]
  /// What the file describes.
  private var written: (at: Duration, fileCount: Int, states: [String: ReadPass.State])?

  /// The longest time for which a run that finishes no file leaves the lines as they are.
  private static let interval = Duration.seconds(10)

  private var states: [String: ReadPass.State] { self.passes.mapValues(\.state) }

  mutating func note(_ layout: RecordLayout) {
    self.objects[layout.entity, default: ObjectFreshness(entity: layout.entity)].topics
      .insert(layout.topic)
  }

  mutating func flushed(
    _ passes: [String: FilePass], awaited: Set<String>, leftOut: Set<String>,
    changed: [String: Int]
  ) {
    (self.passes, self.awaited, self.leftOut) = (passes, awaited, leftOut)
    self.changed = changed
  }

  func isDue(at now: Duration, _ fileCount: Int, isLast: Bool) -> Bool {
    guard !isLast, let written else { return true }
    return fileCount != written.fileCount || now - written.at >= Self.interval
      || self.states != written.states
  }

  mutating func written(at now: Duration, _ fileCount: Int) {
    self.written = (now, fileCount, self.states)
  }

  /// Adds the objects of earlier runs.
  mutating func load(
    from catalog: ColumnCatalog, _ history: ExportHistory
  ) throws(FileSystemError) {
    guard !self.isLoaded else { return }
    for line in try catalog.freshness() {
      let topics = self.objects[line.entity]?.topics ?? []
      self.objects[line.entity] = line
      self.objects[line.entity]?.topics.formUnion(topics)
    }
    // Earlier versions wrote no lines, and a run may have been killed before it did.
    for (folder, topics) in history.folders {
      guard let entity = try catalog.entity(inFolder: folder) else { continue }
      self.objects[entity, default: ObjectFreshness(entity: entity)].topics.formUnion(topics)
    }
    self.isLoaded = true
  }

  /// The lines after a commit.
  ///
  /// - Parameters:
  ///   - polls: the objects without change events, and how often they are read.
  ///   - deadLetters: the number of letters of some topics since a time.
  mutating func lines(
    _ positions: [String: TopicPosition], unfinished: [SegmentRecord], polls: [String: Duration],
    deadLetters: (_ topics: Set<String>, _ start: Int64?) -> Int
  ) -> [ObjectFreshness] {
    var heldBack: [String: ObjectFreshness.HeldBack] = [:]
    for record in unfinished where record.manifest["snapshot"]?.members == nil {
      guard let entity = record.manifest["entity"]?.string else { continue }
      let first = record.manifest["first_commit_timestamp"]?.string
        .flatMap(ObjectFreshness.milliseconds(of:))
      switch (first, heldBack[entity]) {
      case (nil, _), (_, .unknown): heldBack[entity] = .unknown
      case (let first?, .since(let other)): heldBack[entity] = .since(min(first, other))
      case (let first?, nil): heldBack[entity] = .since(first)
      }
    }
    for (entity, object) in self.objects {
      let snapshot = self.passes[entity]
      self.objects[entity]?.snapshot = snapshot
      self.objects[entity]?.deadLetters = deadLetters(object.topics, snapshot?.completion?.begunAt)
      self.objects[entity]?.isAwaited = self.awaited.contains(entity)
      self.objects[entity]?.polledEvery = polls[entity]
      self.objects[entity]?.changedCount = self.changed[entity] ?? 0
      self.objects[entity]?.refreshedAt =
        self.passes.values.first { $0.isRefresh && $0.entity == entity }?.readThrough
      if polls[entity] == nil {
        self.objects[entity]?.advance(to: positions, heldBack: heldBack[entity])
      } else {
        self.objects[entity]?.advance(
          toReadOfChanges: self.passes[ReadPass.changesKey(of: entity)]?.completion)
      }
      if self.leftOut.contains(entity) { self.objects[entity]?.missingRanges += 1 }
    }
    return self.objects.values.sorted { $0.entity < $1.entity }
  }
}
