/// A kind of change of a deal.
enum DealCard {
  case advance, close, nextStep, create, slip, amount, deliver, describe, reassign, reassignSeveral
  case delete, undelete

  static let counts: [(DealCard, Int)] = [
    (.advance, 13), (.close, 3), (.nextStep, 5), (.create, 5), (.slip, 4), (.amount, 4),
    (.deliver, 1), (.describe, 1), (.reassign, 1), (.reassignSeveral, 1), (.delete, 1),
    (.undelete, 1),
  ]
}

// Changes of opportunities.
extension SalesTeam {
  private static let day: Int64 = 86_400_000
  /// The most records that a search for a suitable one looks at.
  private static let reach = 200

  func changeDeal(
    ofNew account: Int?, at time: Int64, in generator: inout EventGenerator,
    into image: inout EventImage
  ) -> [Int] {
    let isFirst = generator.pools[self.opportunity].live.isEmpty
    var card =
      isFirst || account != nil ? DealCard.create : self.deals.draw(&generator.random)
    if card == .create, account == nil, generator.pools[self.opportunity].isFull {
      card = .nextStep
    }
    let change: [Int]? =
      switch card {
      case .create: nil
      case .advance: self.advance(from: nil, at: time, in: &generator, into: &image)
      case .close: self.advance(from: .negotiation, at: time, in: &generator, into: &image)
      case .slip: self.slip(at: time, in: &generator, into: &image)
      case .reassign: self.reassign(upTo: 1, at: time, in: &generator, into: &image)
      case .reassignSeveral: self.reassign(upTo: 4, at: time, in: &generator, into: &image)
      case .delete: self.delete(at: time, in: &generator, into: &image)
      case .undelete: self.undelete(at: time, in: &generator, into: &image)
      case .deliver: self.deliver(at: time, in: &generator, into: &image)
      case .amount, .nextStep, .describe: self.edit(card, at: time, in: &generator, into: &image)
      }
    if let change { return change }
    // No deal suits the card.
    if card != .create,
      let change = self.edit(.nextStep, at: time, in: &generator, into: &image)
    {
      return change
    }
    let (values, owner) = self.newDeal(
      ofAccount: account ?? self.anyAccount(in: &generator), at: time, in: &generator)
    return [
      self.create(
        self.opportunity, values, at: time, by: owner, in: &generator, into: &image)
    ]
  }

  /// Moves a deal on that has been in its stage for long enough.
  ///
  /// - Parameter wanted: the stage; nil for any.
  private func advance(
    from wanted: DealStage?, at time: Int64, in generator: inout EventGenerator,
    into image: inout EventImage
  ) -> [Int]? {
    let found = self.deal(in: &generator) { record, generator in
      let stage = self.stage(record, in: generator)
      let since = self.time(self.opportunity, record, "LastStageChangeDate", in: generator)
      let hash = generator.pools[self.opportunity].records[record].hash
      return !stage.isClosed && wanted ?? stage == stage
        && time - since >= stage.duration(ofDeal: hash)
    }
    guard let record = found else { return nil }
    let stage = self.stage(record, in: generator)
    let isLost =
      stage == .negotiation
      ? generator.random.chance(0.35)
      : stage.place >= DealStage.firstLoss.place && generator.random.chance(0.06)
    let next = isLost ? .lost : DealStage.allCases[stage.place + 1]
    let amount = self.number(self.opportunity, record, "Amount", in: generator)
    var values = Self.stageValues(next, amount: amount, at: time)
    if next.isClosed {
      values += self.closingValues(next, at: time, in: &generator)
    } else {
      values.append(("NextStep", self.nextStep(record, in: &generator)))
    }
    return self.updateDeal([record], values, at: time, in: &generator, into: &image)
  }

  /// Moves the close date of one deal: of a few open ones, that which should close first.
  private func slip(
    at time: Int64, in generator: inout EventGenerator, into image: inout EventImage
  ) -> [Int]? {
    let some = (0..<12).compactMap { _ in self.openDeal(in: &generator) }
    let dates = some.map { (self.time(self.opportunity, $0, "CloseDate", in: generator), $0) }
    guard let (date, record) = dates.min(by: { $0.0 < $1.0 }) else { return nil }
    let wanted = max(date, time) + Int64(7 + generator.random.below(24)) * Self.day
    let later = Self.closeDate(wanted, at: time, &generator.random)
    guard later > date else { return nil }
    return self.updateDeal(
      [record], [("CloseDate", .time(later))], at: time, in: &generator, into: &image)
  }

  /// Gives deals of one owner to another, on behalf of the manager.
  private func reassign(
    upTo count: Int, at time: Int64, in generator: inout EventGenerator,
    into image: inout EventImage
  ) -> [Int]? {
    guard let record = self.openDeal(in: &generator) else { return nil }
    let owner = self.owner(self.opportunity, record, in: generator)
    var records = [record]
    for other in generator.pools[self.opportunity].live.prefix(Self.reach)
    where records.count < count && other != record
      && !self.stage(other, in: generator).isClosed
      && self.owner(self.opportunity, other, in: generator) == owner
    {
      records.append(other)
    }
    let region = self.region(ofAccount: self.account(ofDeal: record, in: generator), in: generator)
    let near = Salesperson.sellers(in: region.code).filter { $0 != owner }
    let all = Salesperson.team.indices.filter {
      Salesperson.team[$0].role == .seller && $0 != owner
    }
    let next = Self.any(near.isEmpty ? all : near, &generator.random)
    return self.update(
      self.opportunity, records, [("OwnerId", Self.userID(next, in: generator))], at: time,
      by: Salesperson.team[owner].manager ?? 0, in: &generator, into: &image)
  }

  /// Deletes a deal at an early stage.
  private func delete(
    at time: Int64, in generator: inout EventGenerator, into image: inout EventImage
  ) -> [Int]? {
    let found = self.deal(in: &generator) { record, generator in
      self.stage(record, in: generator).place <= DealStage.qualification.place
    }
    guard let record = found else { return nil }
    generator.beginTransaction(
      at: time, by: self.owner(self.opportunity, record, in: generator), into: &image)
    image.header.changeType = .delete
    generator.deleteStamped(self.opportunity, record)
    return [record]
  }

  private func undelete(
    at time: Int64, in generator: inout EventGenerator, into image: inout EventImage
  ) -> [Int]? {
    guard let record = generator.pools[self.opportunity].undelete(&generator.random) else {
      return nil
    }
    generator.beginTransaction(
      at: time, by: self.owner(self.opportunity, record, in: generator), into: &image)
    image.header.changeType = .undelete
    generator.stamp(self.opportunity, [record], into: &image, isChange: false)
    generator.fill(self.opportunity, record, into: &image)
    return [record]
  }

  /// Moves the delivery of a won deal on, as a system for orders would.
  private func deliver(
    at time: Int64, in generator: inout EventGenerator, into image: inout EventImage
  ) -> [Int]? {
    let field = "DeliveryInstallationStatus__c"
    let found = self.deal(in: &generator) { record, generator in
      self.stage(record, in: generator) == .won
        && self.text(self.opportunity, record, field, in: generator) != "Completed"
    }
    guard let record = found else { return nil }
    let status = self.text(self.opportunity, record, field, in: generator)
    let number = Self.padded(generator.random.below(1_000_000), 6)
    return self.update(
      self.opportunity, [record],
      status == "In progress"
        ? [(field, .text("Completed"))]
        : [(field, .text("In progress")), ("TrackingNumber__c", .text("LF\(number)"))],
      at: time, by: Salesperson.team.count - 1, in: &generator, into: &image)
  }

  /// Edits an open deal, on behalf of its owner.
  private func edit(
    _ card: DealCard, at time: Int64, in generator: inout EventGenerator,
    into image: inout EventImage
  ) -> [Int]? {
    guard let record = self.openDeal(in: &generator) else { return nil }
    let values: Values
    switch card {
    case .amount:
      let old = self.number(self.opportunity, record, "Amount", in: generator)
      let wanted = Self.amount(old * (0.85 + Double(generator.random.below(36)) / 100))
      let amount = wanted == old ? old - 50 * (old > 500_000 ? 1 : -1) : wanted
      let probability = self.stage(record, in: generator).probability
      values = [
        ("Amount", .number(amount)), ("ExpectedRevenue", .number(amount * probability / 100)),
      ]
    case .describe:
      let account = self.account(ofDeal: record, in: generator)
      let notes = self.region(ofAccount: account, in: generator).dealNotes
      values = [
        (
          "Description",
          self.other(notes, self.opportunity, record, "Description", in: &generator)
        )
      ]
    default:
      values = [("NextStep", self.nextStep(record, in: &generator))]
    }
    return self.updateDeal([record], values, at: time, in: &generator, into: &image)
  }

  private func nextStep(_ record: Int, in generator: inout EventGenerator) -> ValueTable.Value {
    self.other(SalesCatalogue.nextSteps, self.opportunity, record, "NextStep", in: &generator)
  }

  private func updateDeal(
    _ records: [Int], _ values: Values, at time: Int64, in generator: inout EventGenerator,
    into image: inout EventImage
  ) -> [Int] {
    self.update(
      self.opportunity, records, values, at: time,
      by: self.owner(self.opportunity, records[0], in: generator), in: &generator, into: &image)
  }

  // MARK: Choices

  func stage(_ record: Int, in generator: EventGenerator) -> DealStage {
    self.text(self.opportunity, record, "StageName", in: generator).flatMap(
      DealStage.init(rawValue:)) ?? .prospecting
  }

  /// The place of a deal's account. Records are made in the order of their IDs.
  private func account(ofDeal record: Int, in generator: EventGenerator) -> Int? {
    self.text(self.opportunity, record, "AccountId", in: generator)
      .flatMap { RecordID.number(Array($0.utf8)) }.map { Int($0) - 1_000_001 }
  }

  private func openDeal(in generator: inout EventGenerator) -> Int? {
    self.deal(in: &generator) { !self.stage($0, in: $1).isClosed }
  }

  /// Finds a deal that fits, beginning at a random one.
  private func deal(
    in generator: inout EventGenerator, where fits: (Int, EventGenerator) -> Bool
  ) -> Int? {
    let live = generator.pools[self.opportunity].live
    guard !live.isEmpty else { return nil }
    let start = generator.random.below(live.count)
    for offset in 0..<min(live.count, Self.reach) {
      let record = live[(start + offset) % live.count]
      if fits(record, generator) { return record }
    }
    return nil
  }
}
