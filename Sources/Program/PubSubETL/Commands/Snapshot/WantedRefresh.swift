import Clocks
import Pipeline
import RESTSource

/// An object with fields that change without events, and the stores that get their values.
struct WantedRefresh {
  let entity: String
  let topic: String
  let refresh: Refresh
  let stores: Set<String>
  /// Names of the sinks that belong to the stores.
  let sinks: Set<String>

  /// The read of the fields that there are.
  func reads(_ layout: RecordLayout, _ stages: RunStages) -> ReadObject {
    var object = ReadObject(
      entity: self.entity, topic: self.topic, layout: layout, initial: self.stores)
    var refresh = self.refresh
    refresh.readsRecords =
      stages.pipeline.readsAcrossColumns
      || self.sinks.contains { stages.sinks[$0]?.readsAcrossColumns ?? false }
    object.refresh = refresh
    return object
  }
}

extension Refresh {
  /// The reason why listed fields cannot be read; nil if all can.
  ///
  /// - Parameter layout: with the fields that only reads bring.
  func fault(_ layout: RecordLayout) -> String? {
    let fields = self.unknown(to: layout).map { "\(layout.entity).\($0)" }
    guard !fields.isEmpty else { return nil }
    return "/source/refresh/fields: \(BlindFields.list(fields)) cannot be refreshed, because the "
      + "run-as user finds no such field with a single value; check its name, and the user's "
      + "permission to read it"
  }

  /// A line for `check`.
  ///
  /// - Parameter layout: with the fields that only reads bring.
  /// - Throws: `RunFailure` for a field that cannot be read.
  func line(_ layout: RecordLayout, _ blind: BlindFields) throws -> String {
    if let fault = self.fault(layout) { throw RunFailure(.refresh, fault) }
    let own = Set(layout.columns.map(\.name))
    let fields = self.fields.map { $0.sorted() } ?? blind.calculated.filter(own.contains)
    let readable = fields.filter { !blind.hidden.contains($0) && !blind.unreadable.contains($0) }
    return "refresh: \(layout.entity), "
      + (readable.isEmpty ? "no field that can be read" : BlindFields.list(readable))
  }
}

extension SnapshotRun {
  /// What this run refreshes: what is due, and in a run that continues also what will be. In files
  /// only values of records that are there get newer.
  static func refreshes(
    _ session: Session, _ sinks: OpenSinks, _ files: CheckpointedStore?, _ purpose: RunPurpose,
    follows: Bool
  ) throws -> [WantedRefresh] {
    let configuration = session.configuration
    guard !purpose.isSnapshot else { return [] }
    var names = Set(configuration.sinks.filter(\.repairsRecords).map(\.name))
    var stores: [any Store & RecordReceiver] = sinks.copies.filter { names.contains($0.name) }
    if let files, configuration.source.snapshot.mode == .initial {
      stores.append(files)
      names.formUnion(sinks.checkpointed.map(\.settings.name))
    }
    let now = session.assembly.clock.now
    return configuration.source.refreshes.compactMap { entity, topic, refresh in
      let isDue = stores.contains { store in
        let time = refresh.dueAt(
          after: store.pass(over: refresh.key(of: entity)), whole: store.pass(over: entity),
          now: now)
        return time <= now
      }
      guard !stores.isEmpty, isDue || follows else { return nil }
      return WantedRefresh(
        entity: entity, topic: topic, refresh: refresh, stores: Set(stores.map(\.name)),
        sinks: names)
    }
  }
}
