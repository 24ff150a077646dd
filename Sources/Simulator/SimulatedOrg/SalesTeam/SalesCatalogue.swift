/// The team's products, and the companies that buy them.
enum SalesCatalogue {
  struct Product: Sendable {
    var name: String
    /// The price of one unit.
    var price: Double
    /// The most units that a small customer buys; larger customers buy more.
    var most: Int
  }

  static let products = [
    Product(name: "Rooftop Solar", price: 1150, most: 24),
    Product(name: "Battery Storage", price: 6400, most: 5),
    Product(name: "Charging Points", price: 1900, most: 14),
    Product(name: "Heat Pump", price: 9800, most: 3),
    Product(name: "Energy Monitoring", price: 320, most: 40),
    Product(name: "Maintenance Plan", price: 240, most: 60),
    Product(name: "Backup Power", price: 7200, most: 4),
    Product(name: "Inverter Upgrade", price: 2600, most: 9),
  ]

  /// The size of a customer: staff, yearly revenue, and the number of units that it buys, compared
  /// with a small one.
  struct Segment: Sendable {
    var name: String
    var employees: ClosedRange<Int>
    /// Yearly, in thousands.
    var revenue: ClosedRange<Int>
    var scale: Int
  }

  static let segments = [
    Segment(name: "Small Business", employees: 8...60, revenue: 700...9_000, scale: 1),
    Segment(name: "Mid-Market", employees: 80...600, revenue: 12_000...95_000, scale: 5),
    Segment(name: "Enterprise", employees: 900...9_000, revenue: 150_000...2_400_000, scale: 16),
  ]

  /// An industry of Salesforce's standard list, and words that companies in it are named with.
  struct Industry: Sendable {
    var name: String
    var words: [String]
  }

  static let industries = [
    Industry(name: "Agriculture", words: ["Orchards", "Dairies", "Seeds", "Vineyards", "Grains"]),
    Industry(
      name: "Construction", words: ["Timberworks", "Masonry", "Bridges", "Scaffolds", "Roofing"]),
    Industry(
      name: "Food & Beverage", words: ["Bakeries", "Brewers", "Foods", "Creamery", "Coffee"]),
    Industry(name: "Healthcare", words: ["Clinics", "Labs", "Care", "Optics", "Pharmacies"]),
    Industry(name: "Hospitality", words: ["Hotels", "Resorts", "Kitchens", "Inns", "Catering"]),
    Industry(name: "Machinery", words: ["Gears", "Presses", "Engineering", "Pumps", "Cranes"]),
    Industry(name: "Manufacturing", words: ["Ceramics", "Textiles", "Glass", "Paper", "Castings"]),
    Industry(name: "Retail", words: ["Markets", "Gardens", "Outfitters", "Furniture", "Cycles"]),
    Industry(
      name: "Transportation", words: ["Freight", "Ferries", "Cold Chain", "Couriers", "Rail"]),
    Industry(
      name: "Education", words: ["Academies", "Libraries", "Colleges", "Museums", "Campus"]),
  ]

  /// Invented names, which companies begin with.
  static let companies = [
    "Aldwick", "Brennsee", "Carvona", "Dellmoor", "Eskeby", "Fjellvik", "Grauhaven", "Hallowmere",
    "Ilverstad", "Jorvaska", "Kestrelby", "Lindarra", "Morvane", "Nettlecombe", "Orrinvale",
    "Pelmarch", "Quillhaven", "Rosswinter", "Saltmarine", "Tarnbeck", "Ulverly", "Vesterholm",
    "Wyndolme", "Yarrowdene", "Zephrane", "Ambercove", "Birkenlund", "Corvessa", "Drumalder",
    "Elmsquay", "Fennimoor", "Glasvero", "Harrowfen", "Isenbrook", "Juniperra", "Kaldermoss",
    "Larkenfeld", "Mirandell", "Northwyke", "Ossenford",
  ]

  static let titles = [
    ("Chief Financial Officer", "Finance"), ("Head of Facilities", "Facilities"),
    ("Energy Manager", "Facilities"), ("Plant Manager", "Operations"),
    ("Purchasing Manager", "Purchasing"), ("Managing Director", "Management"),
    ("Head of Sustainability", "Management"), ("Operations Lead", "Operations"),
  ]

  static let leadSources = ["Web", "Phone Inquiry", "Partner Referral", "Purchased List", "Other"]

  static let nextSteps = [
    "Call back on Thursday", "Send the revised quote", "Site visit with the installer",
    "Agree on the payment plan", "Meet the technical lead", "Prepare the board paper",
    "Get the roof survey", "Check the grid connection", "Share two references",
    "Walk through the contract", "Confirm the delivery date", "Invite to the showroom",
    "Clarify the subsidy", "Follow up after the holiday", "Demo of the monitoring portal",
    "Wait for the purchase order",
  ]

  static let competitors = ["Sunvalda", "Helioforge", "Wattmere", "Amperion Bay"]
  static let generators = [
    "Diesel, 40 kVA", "Diesel, 120 kVA", "Gas, 75 kVA", "2 x Diesel, 250 kVA",
  ]
  static let losses = [
    "Lost on price.", "Project postponed until next year.", "Chose another supplier.",
    "No budget this year.",
  ]
}
