import Bytes
internal import Clocks
import Logging
import Pipeline
import RESTSource
import SalesforceREST

/// Finds out, at the beginning of a run, which columns can be read, and which of them rows lack.
///
/// Visibility changes without an event, so each run asks about at least one object. How many calls
/// more it makes depends on the hour: they are spread over the day, and all of them are at most half
/// of `repair.max_calls`.
struct ColumnInquiry {
  private let configuration: PipelineConfiguration
  private let client: RESTClient
  private let stages: RunStages
  private var known: Set<String> = []
  /// By object.
  private(set) var described: [String: ObjectDescription] = [:]

  /// Calls on a day that are made at any hour.
  private static let freeCalls = 100
  /// The daily limit if the pipeline sets none and the org's is not known.
  private static let usualLimit = 1000
  /// The share of the org's daily requests if the pipeline sets no limit.
  private static let share = 0.05

  init(_ configuration: PipelineConfiguration, _ client: RESTClient, _ stages: RunStages) {
    self.configuration = configuration
    self.client = client
    self.stages = stages
  }

  /// Notes the columns of copies that are there, and adds what they lack to the reads of this run.
  ///
  /// - Parameter files: those that records are read into; nil if there are none. They get what the
  ///   org says about the fields.
  mutating func ask(
    _ wanted: inout [Wanted], _ sinks: OpenSinks, _ files: CheckpointedStore?,
    _ purpose: RunPurpose, _ logger: Logger
  ) async throws {
    let repairs = self.configuration.repair.mode == .auto
    guard self.configuration.source.snapshot.mode != .never || repairs || purpose.isSnapshot
    else { return }
    var made = 0
    for store in sinks.copies { made += try store.repairCallsOfDay() }
    var isFirst = true
    for index in wanted.indices.shuffled() {
      let entity = wanted[index].entity
      var stores: [(store: any CopyStore, fields: [String])] = []
      for store in sinks.copies {
        let fields = try store.fields(of: entity)
        let isCopied = store.pass(over: entity) != nil
        if isCopied, !fields.isEmpty { stores.append((store, fields)) }
      }
      // Files keep no count of calls, so a run asks about one object for them.
      guard !stores.isEmpty || isFirst && files?.pass(over: entity) != nil else { continue }
      var object: ObjectDescription?
      if self.mayAsk(after: made, isFirst: isFirst) {
        (made, isFirst) = (made + 1, false)
        object = await self.describe(entity, logger)
        if let object { try Self.note(object, in: stores.map(\.store), files) }
      }
      self.known.insert(entity)
      for (store, fields) in stores {
        let name = store.name
        let access = object.map { FieldAccess.known(fields, in: $0) } ?? [:]
        let filling = try store.noteAccess(access, of: entity)
        guard !filling.isEmpty, !wanted[index].reads(into: name),
          store.pass(over: entity)?.state == .complete
        else { continue }
        if self.readsRows(for: name) || filling.contains(where: { !$0.isOfObject }) {
          wanted[index].anew.insert(name)
        } else {
          wanted[index].filling[Set(filling.map(\.field)), default: []].insert(name)
        }
      }
    }
  }

  /// Notes what can be read of objects whose tables do not exist yet.
  mutating func askFirst(
    _ layouts: [String: RecordLayout], _ sinks: OpenSinks, _ files: CheckpointedStore?,
    _ logger: Logger
  ) async throws {
    for (entity, layout) in layouts where !self.known.contains(entity) {
      let stores = sinks.copies
      guard !stores.isEmpty || files != nil, let object = await self.describe(entity, logger) else {
        continue
      }
      let access = FieldAccess.known(layout.fieldNames, in: object)
      for store in stores { _ = try store.noteAccess(access, of: entity) }
      try Self.note(object, in: stores, files)
    }
  }

  private static func note(
    _ object: ObjectDescription, in stores: [any CopyStore], _ files: CheckpointedStore?
  ) throws {
    let fields = object.fields.map { FieldDescription($0) }
    for store in stores { try store.noteDescriptions(fields, of: object.name) }
    try files?.noteDescriptions(fields, of: object.name)
  }

  /// Stages need other columns than those that a sink's rows lack.
  private func readsRows(for sink: String) -> Bool {
    self.stages.pipeline.readsAcrossColumns
      || self.stages.sinks[sink]?.readsAcrossColumns ?? false
  }

  private mutating func describe(
    _ entity: String, _ logger: Logger
  ) async -> ObjectDescription? {
    do {
      let object = try await self.client.describe(entity)
      self.described[entity] = object
      return object
    } catch {
      logger.info("the states of columns of \(entity) were not updated: \(error)")
      return nil
    }
  }

  /// - Parameter made: calls of the day, those for records included.
  private func mayAsk(after made: Int, isFirst: Bool) -> Bool {
    let limit =
      self.configuration.repair.maxCalls
      ?? self.client.usage.map { Int(Double($0.limit) * Self.share) } ?? Self.usualLimit
    let ofHours = Double(limit) / 2 * Double(self.client.clock.wallTime / 1000 % 86_400) / 86_400
    return made < (isFirst ? limit : min(limit, Self.freeCalls + Int(ofHours)))
  }
}
