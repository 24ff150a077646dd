/// Words the values are made of.
enum SampleText {
  private static func list(_ text: [String]) -> [[UInt8]] { text.map { Array($0.utf8) } }

  static let words = Self.list([
    "annual", "contract", "renewal", "solar", "panel", "delivery", "north", "office", "pilot",
    "quote", "review", "sample", "service", "support", "team", "unit", "upgrade", "vendor",
    "warehouse", "zone", "Müller", "naïve", "Straße", "Łódź", "データ", "пример",
  ])

  static let exotic = Self.list([
    "👩‍👩‍👧‍👦 family 🚀", "e\u{301} and n\u{303} combining", "quote \" backslash \\ slash /",
    "nul \u{0} inside", "tab\t line\n return\r both\r\n", "\u{1}\u{1f}\u{7f} controls",
    "\u{2028}line\u{2029}paragraph", "مرحبا بالعالم", "שלום", "株式会社テスト", "\u{feff}mark first",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢", "</script><b>", "a,b;c|d", "NULL", "null", "1e5", "O'Brien; DROP TABLE x",
    " leading and trailing ", "🇩🇪🏴󠁧󠁢󠁳󠁣󠁴󠁿", "\u{fffd}", "\u{10ffff}", "Z̸a̷l̶g̵o̴",
  ])

  static let picklist = Self.list([
    "Prospecting", "Qualification", "Closed Won", "Closed Lost", "Banking", "Biotechnology",
    "Gold", "Silver", "Bronze", "Hot", "Warm", "Cold", "Web", "Partner Referral", "Österreich",
  ])

  static let cities = Self.list(["Berlin", "München", "São Paulo", "東京", "Kraków", "New York"])
  static let countries = Self.list(["Germany", "Brasil", "日本", "Polska", "United States"])
  static let firstNames = Self.list(["Anna", "Zoë", "José", "Łukasz", "太郎", "Siobhán", "Ahmed"])
  static let lastNames = Self.list(["Müller", "O'Connor", "Nguyễn", "山田", "Smith", "Øberg"])
  static let salutations = Self.list(["Mr.", "Ms.", "Dr.", "Prof."])
  static let accuracies = Self.list(["Address", "Street", "City", "Zip"])
}
