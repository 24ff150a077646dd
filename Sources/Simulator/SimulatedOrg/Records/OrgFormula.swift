/// The formula fields of an object with amounts, with their values.
enum OrgFormula: CaseIterable, Sendable {
  /// It changes with the amount and the probability, and no event has it.
  case weightedAmount
  case size, quarter, isOpen, decisionDate, accountName
  /// Uses a function that translators may lack.
  case link

  var name: String {
    switch self {
    case .weightedAmount: "Weighted_Amount__c"
    case .size: "Deal_Size__c"
    case .quarter: "Close_Quarter__c"
    case .isOpen: "Is_Open__c"
    case .decisionDate: "Decision_Date__c"
    case .accountName: "Account_Name__c"
    case .link: "Link__c"
    }
  }

  var type: OrgField.FieldType {
    switch self {
    case .weightedAmount: .currency
    case .size, .quarter, .accountName, .link: .string
    case .isOpen: .boolean
    case .decisionDate: .date
    }
  }

  /// The fields of the same object that it needs.
  var sources: [String] {
    switch self {
    case .weightedAmount: ["Amount", "Probability"]
    case .size: ["Amount"]
    case .quarter, .decisionDate: ["CloseDate"]
    case .isOpen: ["StageName"]
    case .accountName: ["AccountId"]
    case .link: ["Name"]
    }
  }

  var text: String {
    switch self {
    case .weightedAmount: "Amount * Probability"
    case .size:
      "IF(Amount >= 50000, \"Large\", /* in dollars */ IF(Amount >= 5000, 'Medium', 'Small'))"
    case .quarter:
      "IF(ISBLANK(CloseDate), \"\", TEXT(YEAR(CloseDate)) & \"-Q\" & "
        + "TEXT(CEILING(MONTH(CloseDate) / 3)))"
    case .isOpen:
      "NOT(OR(ISPICKVAL(StageName, \"Closed Won\"), ISPICKVAL(StageName, \"Closed Lost\")))"
    case .decisionDate: "CloseDate + 30"
    case .accountName: "Account.Name"
    case .link: "HYPERLINK(\"/\" & Id, Name)"
    }
  }

  var treatsBlankAsZero: Bool { self != .weightedAmount }

  /// - Parameters:
  ///   - id: of the record.
  ///   - sources: values of `sources`.
  ///   - account: the name of the record's account.
  func value(id: [UInt8], _ sources: [FieldValue], account: () -> FieldValue) -> FieldValue {
    switch self {
    case .weightedAmount:
      guard case .double(let amount)? = sources.first, case .double(let percent)? = sources.last
      else { return .null }
      // A formula has no number of more than 18 digits.
      let product = amount * percent / 100
      return abs(product) < 1e18 ? .double(product) : .null
    case .size:
      var amount = 0.0
      if case .double(let value)? = sources.first { amount = value }
      return .text(Array((amount >= 50_000 ? "Large" : amount >= 5000 ? "Medium" : "Small").utf8))
    case .quarter:
      guard case .date(let time)? = sources.first else { return .null }
      let (year, month) = Self.month(of: time)
      return .text(Array("\(year)-Q\((month + 2) / 3)".utf8))
    case .isOpen:
      guard case .text(let stage)? = sources.first else { return .boolean(true) }
      return .boolean(!["Closed Won", "Closed Lost"].contains { Array($0.utf8) == stage })
    case .decisionDate:
      guard case .date(let time)? = sources.first else { return .null }
      return .date(time + 30 * Self.day)
    case .accountName: return account()
    case .link:
      guard case .text(let name)? = sources.first else { return .null }
      return .text(
        Array("<a href=\"/".utf8) + id + Array("\" target=\"_self\">".utf8) + name
          + Array("</a>".utf8))
    }
  }

  private static let day: Int64 = 86_400_000

  /// Year and month of a time, by the calendar of the civil day that contains it.
  private static func month(of time: Int64) -> (year: Int64, month: Int64) {
    // Days since March of year 0, in eras of 400 years.
    let days = (time >= 0 ? time : time - Self.day + 1) / Self.day + 719_468
    let era = (days >= 0 ? days : days - 146_096) / 146_097
    let ofEra = days - era * 146_097
    let yearOfEra = (ofEra - ofEra / 1460 + ofEra / 36_524 - ofEra / 146_096) / 365
    let ofYear = ofEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shifted = (5 * ofYear + 2) / 153
    let month = shifted < 10 ? shifted + 3 : shifted - 9
    return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month)
  }
}
