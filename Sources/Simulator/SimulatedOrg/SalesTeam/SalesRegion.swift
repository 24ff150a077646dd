/// A country in which the team sells, with the parts of its names and addresses. People, companies
/// and streets are invented. Telephone numbers belong to ranges that are reserved for fiction.
struct SalesRegion: Sendable {
  struct City: Sendable {
    var name: String
    var postalCode: String
    /// Name and code, in countries where Salesforce has them.
    var state: (name: String, code: String)?
    var latitude: Double
    var longitude: Double
  }

  var country: String
  var code: String
  /// As in `Contact.Languages__c`.
  var language: String
  var cities: [City]
  var streets: [String]
  var firstNames: [String]
  var lastNames: [String]
  /// Legal forms, which follow the name of a company.
  var companyForms: [String]
  /// Precedes three digits; nil where no range is reserved for fiction.
  var phonePrefix: String?
  /// Descriptions of companies, in the language of the country.
  var accountNotes: [String]
  /// Descriptions of deals, in the language of the country.
  var dealNotes: [String]

  static let all = [
    unitedStates, germany, unitedKingdom, france, spain, brazil, poland, japan,
  ]
}

extension SalesRegion {
  private static let unitedStates = SalesRegion(
    country: "United States", code: "US", language: "English",
    cities: [
      City(
        name: "Denver", postalCode: "80202", state: ("Colorado", "CO"), latitude: 39.75,
        longitude: -104.99),
      City(
        name: "Austin", postalCode: "78701", state: ("Texas", "TX"), latitude: 30.27,
        longitude: -97.74),
      City(
        name: "Portland", postalCode: "97204", state: ("Oregon", "OR"), latitude: 45.52,
        longitude: -122.68),
      City(
        name: "Columbus", postalCode: "43215", state: ("Ohio", "OH"), latitude: 39.96,
        longitude: -83.0),
    ],
    streets: ["Cedar Avenue", "Mill Road", "Harbor Street", "Orchard Lane"],
    firstNames: [
      "Grace", "Maya", "Owen", "Caleb", "Naomi", "Jonah", "Tessa", "Marcus", "Iris", "Dean",
    ],
    lastNames: [
      "Whitlock", "Harrow", "Calloway", "Finch", "Merritt", "Ashby", "Lowell", "Prescott",
      "Dunmore",
      "Tully",
    ],
    companyForms: ["Inc.", "LLC", "Corp."], phonePrefix: "+1 303 555 0",
    accountNotes: [
      "Runs three sites and plans a fourth. Decides by quarter.",
      "Family-owned. The founder signs everything above 50,000 herself.",
      "Came to us through the spring trade show.",
    ],
    dealNotes: [
      "Wants the roof at the main site first, storage in a second phase.",
      "Budget is approved; legal has asked for two changes to the contract.",
      "Compares us with one other supplier. Price is not the main point.",
    ])

  private static let germany = SalesRegion(
    country: "Germany", code: "DE", language: "German",
    cities: [
      City(name: "München", postalCode: "80331", latitude: 48.14, longitude: 11.58),
      City(name: "Hamburg", postalCode: "20095", latitude: 53.55, longitude: 10.0),
      City(name: "Köln", postalCode: "50667", latitude: 50.94, longitude: 6.96),
      City(name: "Leipzig", postalCode: "04109", latitude: 51.34, longitude: 12.37),
    ],
    streets: ["Mühlenstraße", "Am Speicher", "Gartenweg", "Lindenallee"],
    firstNames: [
      "Jutta", "Henrik", "Sabine", "Götz", "Annika", "Volker", "Maren", "Jörg", "Silke", "Timo",
    ],
    lastNames: [
      "Brandtner", "Kesselmann", "Rühling", "Achterberg", "Dörffel", "Wiesental", "Hollmann",
      "Seefelder", "Kranich", "Pfaffrath",
    ],
    companyForms: ["GmbH", "AG", "GmbH & Co. KG"], phonePrefix: "+49 30 23125 ",
    accountNotes: [
      "Drei Werke, Strombedarf rund 4 GWh im Jahr. Einkauf sitzt in der Zentrale.",
      "Familienunternehmen in dritter Generation; entscheidet gründlich, dann schnell.",
      "Über die Hausmesse im Frühjahr gewonnen.",
    ],
    dealNotes: [
      "Möchte zuerst das Hallendach belegen, Speicher später.",
      "Geschäftsführung prüft die Förderung; Rückmeldung bis Monatsende.",
      "Wünscht Wartung für fünf Jahre im Preis.",
    ])

  private static let unitedKingdom = SalesRegion(
    country: "United Kingdom", code: "GB", language: "English",
    cities: [
      City(name: "Leeds", postalCode: "LS1 4AP", latitude: 53.8, longitude: -1.55),
      City(name: "Bristol", postalCode: "BS1 5TY", latitude: 51.45, longitude: -2.59),
      City(name: "Cardiff", postalCode: "CF10 1EP", latitude: 51.48, longitude: -3.18),
    ],
    streets: ["Foundry Row", "Quay Street", "Tanner's Lane", "Priory Road"],
    firstNames: ["Imogen", "Rhys", "Harriet", "Callum", "Priya", "Alistair", "Nerys", "Joel"],
    lastNames: [
      "Thistlewood", "Marlowe", "Penhallow", "Oakshott", "Fairclough", "Redgate", "Hawksworth",
      "Llewelyn",
    ],
    companyForms: ["Ltd", "plc"], phonePrefix: "+44 20 7946 0",
    accountNotes: [
      "Leases most of its roofs, so every site needs the landlord's consent.",
      "Reports its emissions from next year and wants figures by site.",
    ],
    dealNotes: [
      "The board meets on the first Tuesday; paper due a week before.",
      "Asked for a reference from another cold store.",
    ])

  private static let france = SalesRegion(
    country: "France", code: "FR", language: "French",
    cities: [
      City(name: "Lyon", postalCode: "69002", latitude: 45.76, longitude: 4.84),
      City(name: "Nantes", postalCode: "44000", latitude: 47.22, longitude: -1.55),
      City(name: "Besançon", postalCode: "25000", latitude: 47.24, longitude: 6.02),
    ],
    streets: ["rue des Tanneurs", "quai de la Fosse", "avenue du Moulin", "rue de l’Écluse"],
    firstNames: ["Élodie", "Mathieu", "Hélène", "Benoît", "Clémence", "Rémi", "Solène", "Gaël"],
    lastNames: [
      "Duvallon", "Marchefer", "Lacombrade", "Beaurivage", "Thévenard", "Clairval", "Montbrison",
      "Garrigue",
    ],
    companyForms: ["SAS", "SARL", "SA"], phonePrefix: "+33 1 99 00 0",
    accountNotes: [
      "Deux entrepôts frigorifiques, forte consommation la nuit.",
      "Rencontré au salon de l’énergie ; le directeur technique décide.",
    ],
    dealNotes: [
      "Souhaite un devis séparé pour les bornes de recharge.",
      "L’étude de structure du toit est attendue pour la fin du mois.",
    ])

  private static let spain = SalesRegion(
    country: "Spain", code: "ES", language: "Spanish",
    cities: [
      City(name: "Valencia", postalCode: "46002", latitude: 39.47, longitude: -0.38),
      City(name: "Logroño", postalCode: "26001", latitude: 42.46, longitude: -2.45),
    ],
    streets: ["Calle del Molino", "Avenida del Puerto", "Plaza de la Alhóndiga"],
    firstNames: ["Inés", "Álvaro", "Lucía", "Íñigo", "Begoña", "Rubén"],
    lastNames: ["Montalvillo", "Peñarreal", "Aldecosta", "Robledano", "Sanchís", "Villarejo"],
    companyForms: ["S.L.", "S.A."], phonePrefix: nil,
    accountNotes: ["Cooperativa con seis almacenes; la compra se aprueba en asamblea."],
    dealNotes: [
      "Pide ampliar la garantía a doce años.", "Falta la firma del responsable de planta.",
    ])

  private static let brazil = SalesRegion(
    country: "Brazil", code: "BR", language: "Portuguese",
    cities: [
      City(name: "São Paulo", postalCode: "01001-000", latitude: -23.55, longitude: -46.63),
      City(name: "Florianópolis", postalCode: "88010-000", latitude: -27.6, longitude: -48.55),
    ],
    streets: ["Rua das Oliveiras", "Avenida do Porto", "Rua da Estação"],
    firstNames: ["Beatriz", "Thiago", "Luciana", "Caio", "Renata", "João"],
    lastNames: ["Vasconcelhos", "Pedreiral", "Figueirinha", "Altamonte", "Conceição", "Barradas"],
    companyForms: ["Ltda.", "S.A."], phonePrefix: nil,
    accountNotes: ["Conta de energia alta na época da colheita; quer reduzir até o fim do ano."],
    dealNotes: ["Aguardando a avaliação do telhado.", "Pediu financiamento em 36 meses."])

  private static let poland = SalesRegion(
    country: "Poland", code: "PL", language: "Polish",
    cities: [
      City(name: "Kraków", postalCode: "31-042", latitude: 50.06, longitude: 19.94),
      City(name: "Łódź", postalCode: "90-001", latitude: 51.76, longitude: 19.46),
    ],
    streets: ["ul. Młyńska", "ul. Ogrodowa", "ul. Portowa"],
    firstNames: ["Agnieszka", "Paweł", "Zofia", "Michał", "Bożena", "Łukasz"],
    lastNames: ["Wierzbiński", "Jaworek", "Krzesławska", "Dębogórski", "Sosnowicz", "Gródecka"],
    companyForms: ["Sp. z o.o.", "S.A."], phonePrefix: nil,
    accountNotes: ["Zakład pracuje na trzy zmiany; liczy się magazyn energii."],
    dealNotes: ["Czekamy na zgodę zarządu.", "Klient prosi o harmonogram montażu."])

  private static let japan = SalesRegion(
    country: "Japan", code: "JP", language: "Japanese",
    cities: [
      City(name: "Osaka", postalCode: "530-0001", latitude: 34.69, longitude: 135.5),
      City(name: "Sapporo", postalCode: "060-0001", latitude: 43.06, longitude: 141.35),
    ],
    streets: ["Minatomachi", "Kawabata-dori", "Sakuragaoka"],
    firstNames: ["Haruka", "Kenta", "Yui", "Daiki", "Naoko", "Ren"],
    lastNames: ["Minamori", "Kuroda", "Asahina", "Takemura", "Shirakawa", "Hoshino"],
    companyForms: ["K.K."], phonePrefix: nil,
    accountNotes: ["工場の屋根を利用したいとのこと。担当は設備部。"],
    dealNotes: ["見積書を来週までに提出する。", "年度末までの契約を希望。"])
}
