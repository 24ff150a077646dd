/// A user of the org. All of them are invented.
struct Salesperson: Sendable {
  enum Role: Sendable {
    case manager, seller
    /// The user as whom other systems write.
    case integration
  }

  var firstName: String
  var lastName: String
  var title: String
  var department: String
  var role: Role
  /// Place of the superior in `team`.
  var manager: Int?
  /// Codes of the countries that the user sells in; where the user lives comes first.
  var countries: [String]
  var timeZone: String

  var alias: String {
    CompanyName.slug(String(self.firstName.prefix(1)) + String(self.lastName.prefix(7)))
  }
  var email: String {
    CompanyName.slug(self.firstName) + "." + CompanyName.slug(self.lastName) + "@lumenfield.example"
  }

  /// The first one has no superior; the last one is the integration user.
  static let team = [
    Salesperson(
      firstName: "Ingrid", lastName: "Falkenberg", title: "VP Sales", department: "Sales",
      role: .manager, manager: nil, countries: ["DE"], timeZone: "Europe/Berlin"),
    Salesperson(
      firstName: "Marcus", lastName: "Ellery", title: "Sales Director, Americas",
      department: "Sales", role: .manager, manager: 0, countries: ["US", "BR"],
      timeZone: "America/Denver"),
    Salesperson(
      firstName: "Claire", lastName: "Montreuil", title: "Sales Director, Europe",
      department: "Sales", role: .manager, manager: 0, countries: ["FR", "DE", "GB"],
      timeZone: "Europe/Paris"),
    Salesperson(
      firstName: "Dana", lastName: "Whitcombe", title: "Account Executive", department: "Sales",
      role: .seller, manager: 1, countries: ["US"], timeZone: "America/Chicago"),
    Salesperson(
      firstName: "Rafael", lastName: "Quintela", title: "Account Executive", department: "Sales",
      role: .seller, manager: 1, countries: ["BR", "US"], timeZone: "America/Sao_Paulo"),
    Salesperson(
      firstName: "Jonas", lastName: "Petermann", title: "Account Executive", department: "Sales",
      role: .seller, manager: 2, countries: ["DE", "PL"], timeZone: "Europe/Berlin"),
    Salesperson(
      firstName: "Katarzyna", lastName: "Wolańska", title: "Account Executive", department: "Sales",
      role: .seller, manager: 2, countries: ["PL", "DE"], timeZone: "Europe/Warsaw"),
    Salesperson(
      firstName: "Owen", lastName: "Tregarth", title: "Senior Account Executive",
      department: "Sales", role: .seller, manager: 2, countries: ["GB"],
      timeZone: "Europe/London"),
    Salesperson(
      firstName: "Lucía", lastName: "Arbeloa", title: "Account Executive", department: "Sales",
      role: .seller, manager: 2, countries: ["ES", "FR"], timeZone: "Europe/Madrid"),
    Salesperson(
      firstName: "Théo", lastName: "Garance", title: "Account Executive", department: "Sales",
      role: .seller, manager: 2, countries: ["FR", "ES"], timeZone: "Europe/Paris"),
    Salesperson(
      firstName: "Aiko", lastName: "Hanamura", title: "Account Executive", department: "Sales",
      role: .seller, manager: 0, countries: ["JP"], timeZone: "Asia/Tokyo"),
    Salesperson(
      firstName: "Data", lastName: "Integration", title: "Integration User", department: "IT",
      role: .integration, manager: nil, countries: ["DE"], timeZone: "Europe/Berlin"),
  ]

  /// Places of those who sell in a country.
  static func sellers(in country: String) -> [Int] {
    Self.team.indices.filter {
      Self.team[$0].role == .seller && Self.team[$0].countries.contains(country)
    }
  }
}
