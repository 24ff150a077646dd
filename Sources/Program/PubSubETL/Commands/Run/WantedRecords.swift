import Pipeline

/// An object whose records some sinks need.
struct Wanted {
  var entity: String
  var topic: String
  var initial: Set<String> = []
  var anew: Set<String> = []
  var isRepaired = false
  /// The sinks whose rows lack values of some columns, by the dotted names of their fields.
  var filling: [Set<String>: Set<String>] = [:]

  init(entity: String, topic: String) {
    self.entity = entity
    self.topic = topic
  }

  var isEmpty: Bool {
    self.initial.isEmpty && self.anew.isEmpty && !self.isRepaired && self.filling.isEmpty
  }

  /// The sink needs all records.
  func reads(into sink: String) -> Bool {
    self.initial.contains(sink) || self.anew.contains(sink)
  }

  /// - Parameters:
  ///   - condition: see `ReadObject.condition`.
  ///   - source: knows the records that are copied.
  func reads(
    _ layout: RecordLayout, condition: String?, of source: SourceConfiguration
  ) -> [ReadObject] {
    var objects: [ReadObject] = []
    if !self.initial.isEmpty || !self.anew.isEmpty || self.isRepaired {
      var object = ReadObject(
        entity: self.entity, topic: self.topic, layout: layout, initial: self.initial,
        anew: self.anew, condition: condition, isRepaired: self.isRepaired)
      object.limit(to: source)
      objects.append(object)
    }
    for (fields, sinks) in self.filling {
      var object = ReadObject(
        entity: self.entity, topic: self.topic, layout: layout, anew: sinks)
      object.filling = fields
      objects.append(object)
    }
    return objects
  }

  mutating func add(
    _ store: any CopyStore, _ configuration: PipelineConfiguration, _ purpose: RunPurpose,
    follows: Bool
  ) throws {
    let sink = store.name
    let pass = store.pass(over: self.entity)
    let repairs = configuration.repair.mode == .auto
    let mode = configuration.source.snapshot.mode
    let isInitial = mode == .initial || mode == nil && store.beganWithReads
    let isUnfinished = pass.map { $0.state != .complete } ?? false
    if purpose.isSnapshot {
      self.anew.insert(sink)
    } else if isInitial && pass == nil || isUnfinished && (mode != .never || repairs) {
      self.initial.insert(sink)
    } else if repairs, try store.needsPass(over: self.entity, topic: self.topic) {
      self.anew.insert(sink)
    }
    guard repairs else { return }
    // Records that a pass does not return are requested at its end.
    self.isRepaired =
      try self.isRepaired || follows || !self.initial.isEmpty || !self.anew.isEmpty
      || store.recordsToRepair(self.entity, after: "", limit: 1)?.isEmpty != true
  }
}

extension ReadObject {
  mutating func limit(to source: SourceConfiguration) {
    self.scope = source.scope(of: self.entity)?.condition
    self.isSubset = source.subset[self.entity] != nil
  }
}

extension Wanted {
  /// By default, files get only changes, because every read makes them grow.
  mutating func add(
    _ files: CheckpointedStore, _ configuration: PipelineConfiguration, _ purpose: RunPurpose,
    follows: Bool
  ) throws {
    try self.addSnapshot(files, configuration, purpose)
    guard configuration.source.subset[self.entity] != nil, files.repairsRecords else { return }
    self.isRepaired =
      self.isRepaired || follows || self.reads(into: files.name)
      || files.hasChangedRecords(of: self.entity)
  }

  private mutating func addSnapshot(
    _ files: CheckpointedStore, _ configuration: PipelineConfiguration, _ purpose: RunPurpose
  ) throws {
    // The progress of a pass with a condition is not stored, so its rows could be in files more
    // than once.
    if purpose.isSnapshot {
      if purpose.condition == nil { self.anew.insert(files.name) }
      return
    }
    let mode = configuration.source.snapshot.mode
    let pass = files.pass(over: self.entity)
    let isUnfinished = pass.map { $0.state != .complete } ?? false
    if try files.needsPass(over: self.entity, topic: self.topic) || mode == .initial && pass == nil
      || isUnfinished && mode != .never
    {
      self.initial.insert(files.name)
    }
  }

  /// Takes files out again that need no records, now that a layout shows which sinks the object's
  /// rows come to.
  ///
  /// - Parameter layout: the layout behind the pipeline's stages.
  mutating func review(
    _ files: CheckpointedStore, _ configuration: PipelineConfiguration, _ purpose: RunPurpose,
    _ layout: RecordLayout
  ) throws {
    guard self.reads(into: files.name) else { return }
    self.initial.remove(files.name)
    self.anew.remove(files.name)
    if files.takesReads(of: layout) { try self.addSnapshot(files, configuration, purpose) }
  }
}
