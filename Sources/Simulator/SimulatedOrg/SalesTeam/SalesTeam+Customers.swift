/// A kind of change of an account or a contact.
enum CustomerCard {
  case create, move, rate, grow, describe, job, reach, optOut

  static let accountCounts: [(CustomerCard, Int)] = [
    (.create, 4), (.grow, 3), (.rate, 2), (.describe, 1), (.move, 1),
  ]
  static let contactCounts: [(CustomerCard, Int)] = [
    (.create, 2), (.job, 3), (.reach, 3), (.optOut, 1), (.describe, 1),
  ]
}

// Accounts, contacts and users.
extension SalesTeam {
  // MARK: Accounts

  /// The values of a new account.
  func newAccount(in generator: inout EventGenerator) -> (values: Values, owner: Int) {
    let number = generator.pools[self.account].records.count
    // The largest market comes most often.
    let regions = SalesRegion.all
    let region = regions[
      min(generator.random.below(regions.count), generator.random.below(regions.count))]
    let industry = SalesCatalogue.industries[
      generator.random.below(SalesCatalogue.industries.count)]
    let segment = SalesCatalogue.segments[
      min(generator.random.below(3), generator.random.below(3))]
    let form = region.companyForms[generator.random.below(region.companyForms.count)]
    let name = CompanyName(number: number, industry: industry, form: form)
    let sellers = Salesperson.sellers(in: region.code)
    let owner = sellers[generator.random.below(sellers.count)]
    let staff = Self.pick(segment.employees, &generator.random)
    let isCustomer = generator.random.chance(0.6)
    var values: Values = [
      ("Name", .text(name.text)), ("Industry", .text(industry.name)),
      ("Type", .text(isCustomer ? "Customer - Direct" : "Prospect")),
      ("Segment__c", .text(segment.name)), ("OwnerId", Self.userID(owner, in: generator)),
      ("NumberOfEmployees", .int(Int32(staff))),
      ("AnnualRevenue", .number(Double(Self.pick(segment.revenue, &generator.random)) * 1000)),
      (
        "Ownership", .text(segment.scale > 1 && generator.random.chance(0.3) ? "Public" : "Private")
      ),
      ("Website", .text("https://www.\(name.slug).example")),
      ("AccountNumber", .text("AC-\(Self.padded(number + 1, 5))")),
      ("AccountSource", .text(Self.any(SalesCatalogue.leadSources, &generator.random))),
      ("Rating", .text(Self.any(["Hot", "Warm", "Cold"], &generator.random))),
      ("YearStarted", .text(String(1948 + generator.random.below(72)))),
      ("Number_of_Locations__c", .number(Double(1 + staff / 150))),
      ("Customer_Priority__c", .text(Self.any(["High", "Medium", "Low"], &generator.random))),
      ("Active__c", .boolean(isCustomer)),
    ]
    if isCustomer {
      values.append(("SLA__c", .text(Self.any(["Gold", "Silver", "Bronze"], &generator.random))))
    }
    if let prefix = region.phonePrefix {
      values.append(
        ("Phone", .text(prefix + Self.padded(100 + generator.random.below(100), 3))))
    }
    if generator.random.chance(0.4) {
      values.append(("Description", .text(Self.any(region.accountNotes, &generator.random))))
    }
    values += Self.address("BillingAddress", region, &generator.random)
    return (values, owner)
  }

  func changeAccount(
    at time: Int64, in generator: inout EventGenerator, into image: inout EventImage
  ) -> [Int] {
    let live = generator.pools[self.account].live
    let card = live.isEmpty ? .create : self.customers.draw(&generator.random)
    if card == .create, live.isEmpty || !generator.pools[self.account].isFull {
      let (values, owner) = self.newAccount(in: &generator)
      let record = self.create(
        self.account, values, at: time, by: owner, in: &generator, into: &image)
      for model in [self.contact, self.opportunity] where generator.objects.contains(model) {
        self.followUps.append(FollowUp(model: model, account: record))
      }
      return [record]
    }
    let record = live[generator.random.below(live.count)]
    let region = self.region(ofAccount: record, in: generator)
    let values: Values =
      switch card {
      case .rate:
        [
          (
            "Rating",
            self.other(["Hot", "Warm", "Cold"], self.account, record, "Rating", in: &generator)
          ),
          ("Customer_Priority__c", .text(Self.any(["High", "Medium", "Low"], &generator.random))),
        ]
      case .describe:
        [
          (
            "Description",
            self.other(region.accountNotes, self.account, record, "Description", in: &generator)
          )
        ]
      case .move: Self.address("BillingAddress", region, &generator.random)
      default: self.growth(ofAccount: record, in: &generator)
      }
    return self.update(
      self.account, [record], values, at: time, by: self.owner(self.account, record, in: generator),
      in: &generator, into: &image)
  }

  /// New figures, up to a tenth more than before.
  private func growth(ofAccount record: Int, in generator: inout EventGenerator) -> Values {
    let revenue = self.number(self.account, record, "AnnualRevenue", in: generator)
    var staff: Int32 = 0
    if case .int(let number) = self.value(
      self.account, record, "NumberOfEmployees", in: generator)
    {
      staff = number
    }
    let percent = 1 + generator.random.below(10)
    return [
      ("NumberOfEmployees", .int(staff + max(1, staff * Int32(percent) / 100))),
      ("AnnualRevenue", .number((revenue * (1 + Double(percent) / 100) / 1000).rounded() * 1000)),
    ]
  }

  /// The country of an account.
  func region(ofAccount record: Int?, in generator: EventGenerator) -> SalesRegion {
    let code = record.flatMap {
      self.text(self.account, $0, "BillingAddress.CountryCode", in: generator)
    }
    return SalesRegion.all.first { $0.code == code } ?? SalesRegion.all[0]
  }

  // MARK: Contacts

  /// The values of a new contact.
  func newContact(
    ofAccount account: Int?, in generator: inout EventGenerator
  ) -> (values: Values, owner: Int) {
    let region = self.region(ofAccount: account, in: generator)
    let owner = account.map { self.owner(self.account, $0, in: generator) } ?? 0
    let first = Self.any(region.firstNames, &generator.random)
    let last = Self.any(region.lastNames, &generator.random)
    let (title, department) = Self.any(SalesCatalogue.titles, &generator.random)
    let site = account.flatMap { self.text(self.account, $0, "Website", in: generator) }
    let domain = site.map { String($0.dropFirst("https://www.".count)) } ?? "mail.example"
    var values: Values = [
      ("Name.FirstName", .text(first)), ("Name.LastName", .text(last)),
      ("AccountId", account.map { self.id(self.account, $0, in: generator) }),
      ("Title", .text(title)), ("Department", .text(department)),
      ("Email", .text("\(CompanyName.slug(first)).\(CompanyName.slug(last))@\(domain)")),
      ("OwnerId", Self.userID(owner, in: generator)),
      ("LeadSource", .text(Self.any(SalesCatalogue.leadSources, &generator.random))),
      ("Level__c", .text(Self.any(["Primary", "Secondary"], &generator.random))),
      (
        "Languages__c",
        .text(region.language == "English" ? "English" : "English;\(region.language)")
      ),
    ]
    if let account {
      for path in ["Phone", "Segment__c"] {
        values.append((path, self.value(self.account, account, path, in: generator)))
      }
      for part in ["Street", "City", "PostalCode", "State", "StateCode", "Country", "CountryCode"] {
        values.append(
          (
            "MailingAddress.\(part)",
            self.value(self.account, account, "BillingAddress.\(part)", in: generator)
          ))
      }
    }
    return (values, owner)
  }

  func changeContact(
    ofNew account: Int?, at time: Int64, in generator: inout EventGenerator,
    into image: inout EventImage
  ) -> [Int] {
    let live = generator.pools[self.contact].live
    let isNew = live.isEmpty || account != nil
    let card = isNew ? .create : self.people.draw(&generator.random)
    if card == .create, isNew || !generator.pools[self.contact].isFull {
      let account = account ?? self.anyAccount(in: &generator)
      let (values, owner) = self.newContact(ofAccount: account, in: &generator)
      let record = self.create(
        self.contact, values, at: time, by: owner, in: &generator, into: &image)
      if let account { self.contacts[account, default: []].append(record) }
      return [record]
    }
    let record = live[generator.random.below(live.count)]
    let values: Values
    switch card {
    case .optOut: values = [("HasOptedOutOfEmail", .boolean(true))]
    case .describe: values = [("Description", .text("Prefers to be called in the morning."))]
    case .reach:
      let prefix = SalesRegion.all[0].phonePrefix ?? ""
      values = [
        ("MobilePhone", .text(prefix + Self.padded(100 + generator.random.below(100), 3)))
      ]
    default:
      let old = self.text(self.contact, record, "Title", in: generator)
      let titles = SalesCatalogue.titles.filter { $0.0 != old }
      let (title, department) = Self.any(titles, &generator.random)
      values = [("Title", .text(title)), ("Department", .text(department))]
    }
    return self.update(
      self.contact, [record], values, at: time, by: self.owner(self.contact, record, in: generator),
      in: &generator, into: &image)
  }

  // MARK: Users

  /// The values of a member of the team.
  func newUser(_ place: Int, in generator: EventGenerator) -> Values {
    let person = Salesperson.team[place]
    let region = SalesRegion.all.first { $0.code == person.countries[0] } ?? SalesRegion.all[0]
    return [
      ("Username", .text(person.email)), ("Name.FirstName", .text(person.firstName)),
      ("Name.LastName", .text(person.lastName)), ("CompanyName", .text("Lumenfield Energy")),
      ("Department", .text(person.department)), ("Title", .text(person.title)),
      ("Email", .text(person.email)), ("Alias", .text(person.alias)),
      ("CommunityNickname", .text(person.alias)), ("IsActive", .boolean(true)),
      ("Address.City", .text(region.cities[0].name)), ("Address.Country", .text(region.country)),
      ("Address.CountryCode", .text(region.code)), ("TimeZoneSidKey", .text(person.timeZone)),
      ("LocaleSidKey", .text("en_US")), ("EmailEncodingKey", .text("UTF-8")),
      ("LanguageLocaleKey", .text("en_US")), ("UserType", .text("Standard")),
      ("EmployeeNumber", .text(Self.padded(place + 1, 4))),
      ("ManagerId", person.manager.map { Self.userID($0, in: generator) }),
      ("ForecastEnabled", .boolean(person.role != .integration)),
    ]
  }

  func changeUser(
    at time: Int64, in generator: inout EventGenerator, into image: inout EventImage
  ) -> [Int] {
    let record = generator.random.below(Salesperson.team.count)
    let title = self.text(self.user, record, "Title", in: generator) ?? ""
    let promoted = title == "Account Executive" ? "Senior Account Executive" : nil
    let number = Self.padded(100 + generator.random.below(100), 3)
    let prefix = SalesRegion.all[0].phonePrefix ?? ""
    return self.update(
      self.user, [record],
      promoted.map { [("Title", .text($0))] } ?? [("MobilePhone", .text(prefix + number))],
      at: time, by: Salesperson.team.count - 1, in: &generator, into: &image)
  }

  // MARK: Choices

  func anyAccount(in generator: inout EventGenerator) -> Int? {
    let live = generator.pools[self.account].live
    return live.isEmpty ? nil : live[generator.random.below(live.count)]
  }

  /// A text of the list that the field does not have yet, if there is one.
  func other(
    _ list: [String], _ model: Int, _ record: Int, _ path: String,
    in generator: inout EventGenerator
  ) -> ValueTable.Value {
    let old = self.text(model, record, path, in: generator)
    let others = list.filter { $0 != old }
    return .text(Self.any(others.isEmpty ? list : others, &generator.random))
  }

  static func any<Element>(_ list: [Element], _ random: inout RandomStream) -> Element {
    list[random.below(list.count)]
  }

  private static func pick(_ range: ClosedRange<Int>, _ random: inout RandomStream) -> Int {
    range.lowerBound + random.below(range.count)
  }

  static func padded(_ number: Int, _ width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }

  private static func address(
    _ field: String, _ region: SalesRegion, _ random: inout RandomStream
  ) -> Values {
    let city = Self.any(region.cities, &random)
    let street = Self.any(region.streets, &random)
    let number = 1 + random.below(140)
    let isNumberFirst = ["US", "GB", "FR"].contains(region.code)
    return [
      ("\(field).Street", .text(isNumberFirst ? "\(number) \(street)" : "\(street) \(number)")),
      ("\(field).City", .text(city.name)), ("\(field).PostalCode", .text(city.postalCode)),
      ("\(field).State", city.state.map { .text($0.name) }),
      ("\(field).StateCode", city.state.map { .text($0.code) }),
      ("\(field).Country", .text(region.country)),
      ("\(field).CountryCode", .text(region.code)),
      ("\(field).Latitude", .number(city.latitude)),
      ("\(field).Longitude", .number(city.longitude)),
      ("\(field).GeocodeAccuracy", .text("City")),
    ]
  }
}
