// Changes to the records of a readable org about which events say little or nothing.

extension EventGenerator {
  /// Makes the records that exist before the first event, created and last changed over three
  /// years.
  ///
  /// - Parameters:
  ///   - end: the time of the first event, epoch milliseconds.
  ///   - now: the time of the start.
  mutating func addExisting(_ count: Int, until end: Int64, now: Int64) {
    let span = 3 * 365 * 86_400
    if let team = self.team { team.addHistory(count, until: end, now: now, in: &self) }
    for model in self.models.indices
    where self.models[model].category == .changeEvent && self.team?.covers(model) != true {
      for _ in 0..<count {
        let age = 3600 + self.random.below(span)
        self.transaction.commitTimestamp = end - end % 1000 - Int64(age) * 1000
        self.transaction.user = self.random.below(self.users.count)
        let record = self.newRecord(model)
        guard self.random.chance(0.6) else { continue }
        let time = self.transaction.commitTimestamp + Int64(self.random.below(age)) * 1000
        self.pools[model].touch(record, at: time, by: self.random.below(self.users.count))
        self.pools[model].stamp(record, at: time)
      }
    }
    self.transaction = Transaction()
  }

  /// `SystemModstamp` of what the transaction changes. It is set when the statement runs, by another
  /// clock than `commitTimestamp` (RESTAndBulk.md#records-and-events).
  var systemModstamp: Int64 { self.transaction.commitTimestamp + self.transaction.clockDifference }

  /// Changes some values of a record as an update would, without an event that has them.
  mutating func changeUnseen(_ model: Int, _ record: Int) {
    let slots = self.plans[model].mergeable
    for _ in 0...self.random.below(3) {
      let slot = slots[self.random.below(slots.count)]
      let plan = self.plans[model]
      let isNulled = !plan.creations[slot].isAlways && self.random.chance(self.mix.nulls)
      self.pools[model][record, slot] = isNulled ? 0 : self.newVersion(plan.kinds[slot])
    }
    self.pools[model].touch(
      record, at: self.transaction.commitTimestamp, by: self.transaction.user)
    self.pools[model].stamp(record, at: self.systemModstamp)
  }

  /// The changes behind an overflow or wildcard event: updates, creations and deletions.
  mutating func changeManyUnseen(_ model: Int) {
    for _ in 0...self.random.below(20) {
      guard let record = self.anyLiveRecord(model) else { break }
      switch self.random.below(10) {
      case 0 where !self.pools[model].isReferenced(record): self.deleteStamped(model, record)
      case 1 where !self.pools[model].isFull: _ = self.newRecord(model)
      default: self.changeUnseen(model, record)
      }
    }
  }

  mutating func deleteStamped(_ model: Int, _ record: Int) {
    self.pools[model].delete(record)
    self.pools[model].stamp(record, at: self.systemModstamp)
  }

  /// Moves the stamps of the records that have a choice of an edited picklist.
  mutating func stampRecords(of model: Int, slot: Int, withChoice value: String, at time: Int64) {
    guard case .choices(let list) = self.plans[model].kinds[slot],
      let number = list.number(of: value)
    else { return }
    for record in self.pools[model].live {
      let version = self.pools[model][record, slot]
      let hash = self.pools[model].records[record].hash
      guard version != 0,
        self.values.choices(list, record: hash, slot: slot, version: version).contains(number)
      else { continue }
      self.pools[model].stamp(record, at: time - time % 1000)
    }
  }

  private mutating func anyLiveRecord(_ model: Int) -> Int? {
    let live = self.pools[model].live
    return live.isEmpty ? nil : live[self.random.below(live.count)]
  }

  /// A stamp that moves without an event, or a record that leaves the recycle bin.
  mutating func drift(at time: Int64) {
    guard self.keepsRecords, self.random.chance(self.mix.silent) else { return }
    // Every change of the team's records has an event.
    let objects = self.objects.filter { self.team?.covers($0) != true }
    guard !objects.isEmpty else { return }
    let model = objects[self.random.below(objects.count)]
    if self.random.chance(0.1) {
      self.pools[model].purge(&self.random)
    } else if let record = self.anyLiveRecord(model) {
      self.pools[model].stamp(record, at: time - time % 1000)
    }
  }
}
