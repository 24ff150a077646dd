// The values of opportunities.
extension SalesTeam {
  private static let day: Int64 = 86_400_000
  static let amounts = 1_000.0...1_000_000.0

  /// The values of a deal at its first stage.
  func newDeal(
    ofAccount account: Int?, at time: Int64, in generator: inout EventGenerator
  ) -> (values: Values, owner: Int) {
    let owner =
      account.map { self.owner(self.account, $0, in: generator) }
      ?? Self.any(Salesperson.sellers(in: SalesRegion.all[0].code), &generator.random)
    let region = self.region(ofAccount: account, in: generator)
    let segmentName = account.flatMap {
      self.text(self.account, $0, "Segment__c", in: generator)
    }
    let segment =
      SalesCatalogue.segments.first { $0.name == segmentName } ?? SalesCatalogue.segments[0]
    let product = Self.any(SalesCatalogue.products, &generator.random)
    let units = (1 + product.most / 3 + generator.random.below(product.most)) * segment.scale
    let amount = Self.amount(product.price * Double(units))
    let isKnown =
      account.flatMap { self.text(self.account, $0, "Type", in: generator) } == "Customer - Direct"
    let duration = DealStage.open.reduce(0) {
      $0 + $1.duration(ofDeal: generator.random.next())
    }
    var values: Values = [
      ("Name", .text(self.dealName(ofAccount: account, product.name, region, in: generator))),
      ("AccountId", account.map { self.id(self.account, $0, in: generator) }),
      ("OwnerId", Self.userID(owner, in: generator)), ("Amount", .number(amount)),
      ("TotalOpportunityQuantity", .number(Double(units))),
      ("Type", .text(isKnown ? "Existing Customer - Upgrade" : "New Customer")),
      ("LeadSource", .text(Self.any(SalesCatalogue.leadSources, &generator.random))),
      ("Segment__c", .text(segment.name)),
      ("CloseDate", .time(Self.closeDate(time + duration, at: time, &generator.random))),
      ("NextStep", .text(Self.any(SalesCatalogue.nextSteps, &generator.random))),
    ]
    if let contact = account.flatMap({ self.contacts[$0]?.first }) {
      values.append(("ContactId", self.id(self.contact, contact, in: generator)))
    }
    if generator.random.chance(0.3) {
      values.append(("Description", .text(Self.any(region.dealNotes, &generator.random))))
    }
    if generator.random.chance(0.4) {
      let competitors = SalesCatalogue.competitors
      let first = generator.random.below(competitors.count)
      let both = generator.random.chance(0.3)
      let names = [competitors[first], competitors[(first + 1) % competitors.count]]
      values.append(
        ("MainCompetitors__c", .text(names.prefix(both ? 2 : 1).joined(separator: ";"))))
    }
    if product.name == "Backup Power" {
      values.append(
        ("CurrentGenerators__c", .text(Self.any(SalesCatalogue.generators, &generator.random))))
    }
    return (values + Self.stageValues(.prospecting, amount: amount, at: time), owner)
  }

  private func dealName(
    ofAccount account: Int?, _ product: String, _ region: SalesRegion, in generator: EventGenerator
  ) -> String {
    guard let account, let name = self.text(self.account, account, "Name", in: generator) else {
      return product
    }
    let form = region.companyForms.first { name.hasSuffix(" \($0)") }
    return "\(name.dropLast(form.map { $0.count + 1 } ?? 0)) - \(product)"
  }

  /// The values that follow from the stage.
  static func stageValues(_ stage: DealStage, amount: Double, at time: Int64) -> Values {
    [
      ("StageName", .text(stage.rawValue)), ("Probability", .number(stage.probability)),
      ("ExpectedRevenue", .number(amount * stage.probability / 100)),
      ("IsClosed", .boolean(stage.isClosed)), ("IsWon", .boolean(stage == .won)),
      ("ForecastCategory", .text(stage.forecast.category)),
      ("ForecastCategoryName", .text(stage.forecast.name)),
      ("LastStageChangeDate", .time(time - time % 1000)),
    ]
  }

  /// The values that the end of a deal adds.
  func closingValues(
    _ stage: DealStage, at time: Int64, in generator: inout EventGenerator
  ) -> Values {
    var values: Values = [("CloseDate", .time(time - time % Self.day)), ("NextStep", nil)]
    if stage == .won {
      let number = Self.padded(generator.random.below(100_000), 5)
      values += [
        ("OrderNumber__c", .text("SO-\(number)")),
        ("DeliveryInstallationStatus__c", .text("Yet to begin")),
      ]
    } else {
      values.append(("Description", .text(Self.any(SalesCatalogue.losses, &generator.random))))
    }
    return values
  }

  /// To the nearest 50.
  static func amount(_ wanted: Double) -> Double {
    min(max((wanted / 50).rounded() * 50, Self.amounts.lowerBound), Self.amounts.upperBound)
  }

  /// A working day on which a deal is meant to close, in the year of `now` unless that is about to
  /// end.
  static func closeDate(
    _ wanted: Int64, at now: Int64, mayLeaveYear: Bool = true, _ random: inout RandomStream
  ) -> Int64 {
    let today = now - now % Self.day
    var last = CivilDate.lastDay(ofYearOf: now)
    if mayLeaveYear, last - today < 14 * Self.day { last = today + 45 * Self.day }
    var date = max(wanted - wanted % Self.day, CivilDate.firstDay(ofYearOf: now))
    if date > last {
      // In the second half of the time that is left.
      date = last - Int64(random.below(Int((last - today) / Self.day) / 2 + 1)) * Self.day
    }
    // 1 January 1970 was a Thursday.
    let weekday = (date / Self.day + 4) % 7
    let weekend: Int64 = weekday == 6 ? 1 : weekday == 0 ? 2 : 0
    let friday = date - weekend * Self.day
    return CivilDate.year(friday) == CivilDate.year(date) && friday >= today ? friday : date
  }
}
