// One change event of each kind, as ChangeEvents.md describes them.

extension EventGenerator {
  /// Decides what happens, changes the records and fills header and body. Returns the records concerned.
  mutating func makeChange(_ model: Int, into image: inout EventImage) -> [Int] {
    if self.random.chance(self.mix.overflows) {
      image.kind = .overflow
      image.header.changeType = .gapOverflow
      image.header.recordIDs.append(Array("000000000000000AAA".utf8))
      if self.keepsRecords { self.changeManyUnseen(model) }
      return []
    }
    if self.random.chance(self.mix.wildcards) {
      self.setWildcard(model, into: &image)
      if self.keepsRecords { self.changeManyUnseen(model) }
      return []
    }
    if self.random.chance(self.mix.gaps) {
      return self.makeGap(model, into: &image)
    }
    if self.pools[model].live.isEmpty { return [self.makeCreate(model, into: &image)] }
    if self.random.chance(self.mix.large) {
      return self.makeLarge(model, into: &image)
    }
    if self.random.chance(self.mix.merged) { return self.makeMerged(model, into: &image) }
    if self.random.chance(self.mix.diffs), !self.plans[model].longTexts.isEmpty {
      return [self.makeLongTextUpdate(model, into: &image)]
    }
    if self.random.chance(self.mix.geocodes), !self.plans[model].addresses.isEmpty {
      return [self.makeGeocodeUpdate(model, into: &image)]
    }
    switch self.random.below(100) {
    case 0..<18 where !self.pools[model].isFull:
      return [self.makeCreate(model, into: &image)]
    case 18..<24: return self.makeDelete(model, count: 1, into: &image)
    case 24..<27:
      guard let record = self.pools[model].undelete(&self.random) else { fallthrough }
      image.header.changeType = .undelete
      self.stamp(model, [record], into: &image, isChange: false)
      self.fill(model, record, into: &image)
      return [record]
    default: return [self.makeUpdate(model, into: &image)]
    }
  }

  func setWildcard(_ model: Int, into image: inout EventImage) {
    image.kind = .wildcard
    image.header.changeType = .update
    image.header.recordIDs.append(Array((self.models[model].keyPrefix + "*").utf8))
  }

  private mutating func anyLive(_ model: Int) -> Int {
    let live = self.pools[model].live
    return live[self.random.below(live.count)]
  }

  private mutating func someLive(_ model: Int, upTo count: Int) -> [Int] {
    var chosen: [Int] = []
    for _ in 0..<count {
      let record = self.anyLive(model)
      if !chosen.contains(record) { chosen.append(record) }
    }
    return chosen
  }

  /// A version number, which is 0 and means null only for references while there is nothing to refer
  /// to.
  mutating func newVersion(_ kind: ValueKind?) -> UInt32 {
    if let entity = kind?.referencedEntity {
      guard let model = self.modelOfEntity[entity] else {
        return RecordPool.foreignReference(&self.random)
      }
      return self.pools[model].reference(&self.random)
    }
    if case .choices(let list) = kind { return list.newVersion(&self.random) }
    let number = UInt32(truncatingIfNeeded: self.random.next()) & 0x3fff_ff00 | 0x100
    return kind?.isLongText ?? false ? number : number | UInt32(self.random.below(256))
  }

  // MARK: Full images

  private mutating func makeCreate(_ model: Int, into image: inout EventImage) -> Int {
    let record = self.newRecord(model)
    image.header.changeType = .create
    self.fill(model, record, into: &image)
    return record
  }

  mutating func newRecord(_ model: Int) -> Int {
    let record = self.pools[model].create(
      seed: self.seed, at: self.transaction.commitTimestamp, by: self.transaction.user)
    self.pools[model].stamp(record, at: self.systemModstamp)
    let isPerson = self.pools[model].records[record].isPerson
    let plan = self.plans[model]
    for (index, creation) in plan.creations.enumerated() {
      if creation.isOfPersons, !isPerson { continue }
      if let parent = creation.parent {
        guard self.pools[model][record, parent] != 0 else { continue }
        if plan.hasPersons, parent == plan.name, !isPerson { continue }
      }
      if creation.isAlways || self.random.chance(creation.parent == nil ? 0.45 : 0.8) {
        var version = self.newVersion(plan.kinds[index])
        if plan.kinds[index]?.isLongText ?? false, self.random.chance(0.04) {
          version |= ValueSource.Version.long
        }
        self.pools[model][record, index] = version
      }
    }
    return record
  }

  /// Puts all values of the record into the image.
  func fill(_ model: Int, _ record: Int, into image: inout EventImage) {
    let schema = image.schema
    for slot in schema.positions.indices where schema.positions[slot] != nil {
      self.setCell(model, record, slot, into: &image)
    }
  }

  /// Sets one cell to the record's current value.
  func setCell(_ model: Int, _ record: Int, _ slot: Int, into image: inout EventImage) {
    image.cells[slot] = self.readers[model].cell(
      self.pools[model].table, record, slot, into: &image)
  }

  // MARK: Updates

  /// The change itself sets the date and, if another user made it, the user.
  mutating func stamp(
    _ model: Int, _ records: [Int], into image: inout EventImage, isChange: Bool = true
  ) {
    var isOtherUser = false
    for record in records {
      isOtherUser =
        isOtherUser || self.pools[model].records[record].modifiedBy != self.transaction.user
      self.pools[model].touch(
        record, at: self.transaction.commitTimestamp, by: self.transaction.user)
      self.pools[model].stamp(record, at: self.systemModstamp)
    }
    guard isChange, let first = records.first else { return }
    for (slot, source) in self.plans[model].formulas
    where image.header.changed.contains(source) && image.schema.positions[slot] != nil {
      image.header.changed.append(slot)
      self.setCell(model, first, slot, into: &image)
      if image.cells[slot].isNull { image.header.nulled.append(slot) }
    }
    if let slot = self.plans[model].modifiedDate {
      image.header.changed.append(slot)
      self.setCell(model, first, slot, into: &image)
    }
    if isOtherUser, let slot = self.plans[model].modifiedBy {
      image.header.changed.append(slot)
      self.setCell(model, first, slot, into: &image)
    }
  }

  private mutating func makeUpdate(_ model: Int, into image: inout EventImage) -> Int {
    let record = self.anyLive(model)
    image.header.changeType = .update
    let isPerson = self.pools[model].records[record].isPerson
    let candidates = self.plans[model].candidates
    for _ in 0...self.random.below(4) {
      let slot = candidates[self.random.below(candidates.count)]
      let plan = self.plans[model]
      guard image.schema.positions[slot] != nil,
        isPerson || !plan.creations[slot].isOfPersons,
        !image.header.changed.contains(where: {
          $0 == slot || plan.creations[$0].parent == slot
        })
      else { continue }
      if let children = self.models[model].firstChild[slot],
        !self.plans[model].hasPersons || slot != self.plans[model].name || isPerson
      {
        self.changeCompound(model, record, slot, children, into: &image)
      } else {
        self.changeScalar(model, record, slot, into: &image)
      }
    }
    self.stamp(model, [record], into: &image)
    return record
  }

  private mutating func changeScalar(
    _ model: Int, _ record: Int, _ slot: Int, into image: inout EventImage
  ) {
    image.header.changed.append(slot)
    let isNulled =
      !self.plans[model].creations[slot].isAlways && self.pools[model][record, slot] != 0
      && self.random.chance(self.mix.nulls)
    let version = isNulled ? 0 : self.newVersion(self.plans[model].kinds[slot])
    self.pools[model][record, slot] = version
    if version == 0 {
      image.header.nulled.append(slot)
    } else {
      self.setCell(model, record, slot, into: &image)
    }
  }

  private mutating func changeCompound(
    _ model: Int, _ record: Int, _ slot: Int, _ children: Range<Int>,
    into image: inout EventImage
  ) {
    let isName = slot == self.plans[model].name
    if !isName, self.pools[model][record, slot] != 0, self.random.chance(self.mix.nulls) {
      self.pools[model][record, slot] = 0
      for child in children { self.pools[model][record, child] = 0 }
      image.header.changed.append(slot)
      image.header.nulled.append(slot)
      return
    }
    self.pools[model][record, slot] = 1
    var hasValue = false
    for _ in 0...self.random.below(3) {
      let child = children.lowerBound + self.random.below(children.count)
      guard image.schema.positions[child] != nil, !image.header.changed.contains(child) else {
        continue
      }
      self.changeScalar(model, record, child, into: &image)
      hasValue = hasValue || !image.cells[child].isNull
    }
    // a parent of which only children were cleared may be null or an empty record
    image.cells[slot] = hasValue || self.random.chance(0.5) ? .record : .null
  }

  private mutating func makeMerged(_ model: Int, into image: inout EventImage) -> [Int] {
    if self.random.chance(0.1) {
      return self.makeDelete(model, count: 2 + self.random.below(4), into: &image)
    }
    let records = self.someLive(model, upTo: 2 + self.random.below(19))
    image.header.changeType = .update
    let fields = self.plans[model].mergeable
    for _ in 0...self.random.below(2) {
      let slot = fields[self.random.below(fields.count)]
      guard image.schema.positions[slot] != nil, !image.header.changed.contains(slot) else {
        continue
      }
      self.changeAlike(model, records, slot, into: &image)
    }
    self.stamp(model, records, into: &image)
    return records
  }

  private mutating func changeAlike(
    _ model: Int, _ records: [Int], _ slot: Int, into image: inout EventImage
  ) {
    let kind = self.plans[model].kinds[slot]
    let isNulled =
      self.random.chance(self.mix.nulls) && !self.plans[model].creations[slot].isAlways
    var version = isNulled ? 0 : self.newVersion(kind)
    if version != 0 { version |= ValueSource.Version.shared }
    for record in records { self.pools[model][record, slot] = version }
    image.header.changed.append(slot)
    if version == 0 {
      image.header.nulled.append(slot)
    } else {
      self.setCell(model, records[0], slot, into: &image)
    }
  }

  /// The largest possible event: almost 1 MB for 200 records, or for all records if there are
  /// fewer.
  private mutating func makeLarge(_ model: Int, into image: inout EventImage) -> [Int] {
    guard let slot = self.plans[model].longTexts.first, image.schema.positions[slot] != nil else {
      return [self.makeUpdate(model, into: &image)]
    }
    var records = self.someLive(model, upTo: 200)
    for record in self.pools[model].live where records.count < 200 && !records.contains(record) {
      records.append(record)
    }
    image.header.changeType = .update
    image.header.changed.append(slot)
    for record in records { self.pools[model][record, slot] = 0x100 }
    let start = image.arena.count
    self.values.appendHugeText(
      byteCount: 1_030_000, seed: self.random.next(), to: &image.arena)
    image.cells[slot] = .text(start: Int32(start), count: Int32(image.arena.count - start))
    self.stamp(model, records, into: &image)
    return records
  }

  /// Makes a short text long, and edits a long one, which is sent as a diff.
  private mutating func makeLongTextUpdate(_ model: Int, into image: inout EventImage) -> Int {
    let record = self.anyLive(model)
    let slots = self.plans[model].longTexts
    let slot = slots[self.random.below(slots.count)]
    guard image.schema.positions[slot] != nil else { return self.makeUpdate(model, into: &image) }
    image.header.changeType = .update
    image.header.changed.append(slot)
    let version = self.pools[model][record, slot]
    let edits = version & ValueSource.Version.editMask
    if version & ValueSource.Version.long != 0, edits < ValueSource.Version.editMask {
      self.pools[model][record, slot] = version + 1
      let start = image.arena.count
      self.values.appendDiff(
        record: self.pools[model].records[record].hash, slot: slot, version: version + 1,
        to: &image.arena)
      image.cells[slot] = .text(start: Int32(start), count: Int32(image.arena.count - start))
      image.header.diff.append(slot)
    } else {
      self.pools[model][record, slot] = self.newVersion(.longText) | ValueSource.Version.long
      self.setCell(model, record, slot, into: &image)
    }
    self.stamp(model, [record], into: &image)
    return record
  }

  /// Coordinates only, by the platform: no origin, no LastModifiedDate.
  private mutating func makeGeocodeUpdate(_ model: Int, into image: inout EventImage) -> Int {
    let record = self.anyLive(model)
    let addresses = self.plans[model].addresses
    let slot = addresses[self.random.below(addresses.count)]
    image.header.changeType = .update
    image.header.changeOrigin = []
    self.pools[model][record, slot] = 1
    image.cells[slot] = .record
    for child in self.models[model].firstChild[slot, default: 0..<0] {
      switch self.models[model].slots[child].kind {
      case .latitude, .longitude:
        self.pools[model][record, child] = self.newVersion(nil)
        image.header.changed.append(child)
        self.setCell(model, record, child, into: &image)
      default: break
      }
    }
    self.pools[model].stamp(record, at: self.systemModstamp)
    return record
  }

  // MARK: Deletions and gaps

  /// Becomes an update if other records refer to all chosen ones.
  private mutating func makeDelete(
    _ model: Int, count: Int, into image: inout EventImage
  ) -> [Int] {
    let records = self.someLive(model, upTo: count).filter {
      !self.pools[model].isReferenced($0)
    }
    guard !records.isEmpty else { return [self.makeUpdate(model, into: &image)] }
    image.header.changeType = .delete
    for record in records { self.deleteStamped(model, record) }
    return records
  }

  private mutating func makeGap(_ model: Int, into image: inout EventImage) -> [Int] {
    image.kind = .gap
    image.header.transactionKey = RecordID.uuid(&self.random)
    image.header.sequenceNumber = 1
    var records: [Int] = []
    let choice = self.pools[model].live.isEmpty ? 0 : self.random.below(4)
    switch choice {
    case 0:
      image.header.changeType = .gapCreate
      records = [self.newRecord(model)]
    case 1:
      records = self.someLive(model, upTo: 1 + self.random.below(3)).filter {
        !self.pools[model].isReferenced($0)
      }
      guard !records.isEmpty else { fallthrough }
      image.header.changeType = .gapDelete
      for record in records { self.deleteStamped(model, record) }
    case 2:
      guard let record = self.pools[model].undelete(&self.random) else { fallthrough }
      image.header.changeType = .gapUndelete
      self.pools[model].stamp(record, at: self.systemModstamp)
      records = [record]
    default:
      image.header.changeType = .gapUpdate
      records = self.someLive(model, upTo: 1 + self.random.below(3))
      if self.keepsRecords { for record in records { self.changeUnseen(model, record) } }
    }
    return records
  }
}
