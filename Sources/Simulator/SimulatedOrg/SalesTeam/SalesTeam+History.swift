// The records that the team has before the first event.
extension SalesTeam {
  private static let day: Int64 = 86_400_000

  /// Makes the users, and so many accounts, contacts and opportunities.
  ///
  /// - Parameters:
  ///   - end: the time of the first event, epoch milliseconds.
  ///   - now: the time of the start.
  func addHistory(
    _ count: Int, until end: Int64, now: Int64, in generator: inout EventGenerator
  ) {
    let end = end - end % 1000
    for place in Salesperson.team.indices {
      let time = end - Int64(500 + generator.random.below(400)) * Self.day
      let record = self.create(
        self.user, self.newUser(place, in: generator), at: time, by: 0, in: &generator)
      self.change(self.user, record, at: end - Int64(30 + place) * Self.day, by: 0, in: &generator)
    }
    for _ in 0..<count {
      let (values, owner) = self.newAccount(in: &generator)
      let age = 220 + generator.random.below(900)
      let record = self.create(
        self.account, values, at: self.workTime(age, before: end, in: &generator), by: owner,
        in: &generator)
      guard generator.random.chance(0.6) else { continue }
      let time = self.workTime(1 + generator.random.below(age - 1), before: end, in: &generator)
      self.change(self.account, record, at: time, by: owner, in: &generator)
    }
    for number in 0..<count {
      // Most accounts have one contact.
      let account = generator.random.chance(0.8) ? number : generator.random.below(count)
      let (values, owner) = self.newContact(ofAccount: account, in: &generator)
      let time = self.workTime(1 + generator.random.below(119), before: end, in: &generator)
      let record = self.create(self.contact, values, at: time, by: owner, in: &generator)
      self.contacts[account, default: []].append(record)
    }
    for number in 0..<count { self.addDeal(number, before: end, now: now, in: &generator) }
  }

  /// Makes a deal as it is after some weeks.
  private func addDeal(
    _ number: Int, before end: Int64, now: Int64, in generator: inout EventGenerator
  ) {
    let stage = self.pastStage(&generator.random)
    let path: [DealStage]
    switch stage {
    case .won: path = DealStage.open
    case .lost:
      let last = DealStage.firstLoss.place + generator.random.below(7)
      path = Array(DealStage.open[...last])
    default: path = Array(DealStage.open[..<stage.place])
    }
    let durations = path.reduce(0) { $0 + $1.duration(ofDeal: generator.random.next()) }
    let age = stage.isClosed ? 1 + generator.random.below(110) : generator.random.below(9)
    var changedAt = self.workTime(age, before: end, in: &generator)
    // The deals that closed did so in that year.
    if stage.isClosed, CivilDate.year(changedAt) != CivilDate.year(end) {
      let first = CivilDate.firstDay(ofYearOf: end)
      changedAt = first + (end - first) / 1000 * Int64(generator.random.below(900) + 50)
      changedAt -= changedAt % 1000
    }
    let createdAt = changedAt - durations
    let account = self.anyAccount(in: &generator)
    var (values, owner) = self.newDeal(ofAccount: account, at: createdAt, in: &generator)
    guard case .number(let amount) = values.first(where: { $0.path == "Amount" })?.value else {
      preconditionFailure("a new deal has an amount")
    }
    values += Self.stageValues(stage, amount: amount, at: changedAt)
    if stage.isClosed {
      values += self.closingValues(stage, at: changedAt, in: &generator)
    } else {
      let left = DealStage.open.count - stage.place
      // Around New Year, the events begin in the year before.
      let today = max(end, CivilDate.firstDay(ofYearOf: now))
      let wanted = today + Int64(left * 6 - 7 + generator.random.below(20)) * Self.day
      values.append(
        (
          "CloseDate",
          .time(Self.closeDate(wanted, at: today, mayLeaveYear: false, &generator.random))
        ))
    }
    let record = self.create(
      self.opportunity, values, at: createdAt, by: owner, in: &generator)
    self.change(self.opportunity, record, at: changedAt, by: owner, in: &generator)
    // A few are in the recycle bin.
    if number % 50 == 49 {
      generator.pools[self.opportunity].delete(record)
      generator.pools[self.opportunity].stamp(record, at: max(changedAt, end - 2 * Self.day))
    }
  }

  private func pastStage(_ random: inout RandomStream) -> DealStage {
    switch random.below(100) {
    case ..<20: .won
    case ..<34: .lost
    default: DealStage.open[min(random.below(8), random.below(16))]
    }
  }

  private func change(
    _ model: Int, _ record: Int, at time: Int64, by user: Int, in generator: inout EventGenerator
  ) {
    generator.pools[model].touch(record, at: time, by: user)
    generator.pools[model].stamp(record, at: time)
  }

  /// A time so many days ago, between 7 and 18 o'clock in UTC.
  private func workTime(
    _ days: Int, before end: Int64, in generator: inout EventGenerator
  ) -> Int64 {
    let time = end - Int64(days) * Self.day
    let clock = Int64(7 * 3600 + generator.random.below(11 * 3600)) * 1000
    return min(time - time % Self.day + clock, end - 60_000)
  }
}
