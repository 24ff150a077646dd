/// The standard stages of an opportunity. A deal passes through the open ones in order, and is won at
/// their end or lost on the way.
enum DealStage: String, CaseIterable {
  case prospecting = "Prospecting"
  case qualification = "Qualification"
  case needsAnalysis = "Needs Analysis"
  case valueProposition = "Value Proposition"
  case decisionMakers = "Id. Decision Makers"
  case perceptionAnalysis = "Perception Analysis"
  case proposal = "Proposal/Price Quote"
  case negotiation = "Negotiation/Review"
  case won = "Closed Won"
  case lost = "Closed Lost"

  /// The open stages, in order.
  static let open = Array(Self.allCases.dropLast(2))
  /// The earliest stage at which a deal is lost.
  static let firstLoss = DealStage.qualification

  var isClosed: Bool { self == .won || self == .lost }

  /// The place among all stages.
  var place: Int { Self.allCases.firstIndex(of: self) ?? 0 }

  /// Percent.
  var probability: Double {
    switch self {
    case .prospecting, .qualification: 10
    case .needsAnalysis: 20
    case .valueProposition: 50
    case .decisionMakers: 60
    case .perceptionAnalysis: 70
    case .proposal: 75
    case .negotiation: 90
    case .won: 100
    case .lost: 0
    }
  }

  /// `ForecastCategory` and `ForecastCategoryName`.
  var forecast: (category: String, name: String) {
    switch self {
    case .proposal: ("BestCase", "Best Case")
    case .negotiation: ("Forecast", "Commit")
    case .won: ("Closed", "Closed")
    case .lost: ("Omitted", "Omitted")
    default: ("Pipeline", "Pipeline")
    }
  }

  /// How long a deal stays in an open stage, milliseconds: 2 to 11 days, later 1 to 5.
  func duration(ofDeal hash: UInt64) -> Int64 {
    var random = RandomStream(seed: RandomStream.mix(hash &+ UInt64(self.place)))
    let (least, more) = self.place < DealStage.decisionMakers.place ? (2, 9) : (1, 4)
    return Int64(least * 86_400 + random.below(more * 86_400)) * 1000
  }
}
