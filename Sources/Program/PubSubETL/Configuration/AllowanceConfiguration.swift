import JSON
import Pipeline

/// What a run may use of the org's daily allowance of delivered events (`allowance`).
struct AllowanceConfiguration: Sendable, Equatable {
  /// What has to be left for the org's other subscribers.
  enum Reserve: Sendable, Equatable {
    /// Percent of the allowance, 0…100.
    case share(Int)
    case events(Int)

    /// - Parameter max: events that the service delivers in 24 hours.
    func events(of max: Int64) -> Int64 {
      switch self {
      case .share(let percent):
        // Rounded up, and without a product that could overflow.
        max / 100 * Int64(percent) + (max % 100 * Int64(percent) + 99) / 100
      case .events(let count): Int64(count)
      }
    }

    var text: String {
      switch self {
      case .share(let percent): "\(percent)%"
      case .events(let count): Phrase.count(count, "event")
      }
    }

    /// - Returns: nil unless it is `"20%"`.
    init?(percent text: String) {
      guard text.hasSuffix("%"), let percent = Int(text.dropLast()), (0...100).contains(percent),
        text.utf8.allSatisfy({ (0x30...0x39).contains($0) || $0 == UInt8(ascii: "%") })
      else { return nil }
      self = .share(percent)
    }
  }

  /// Nil: everything may be used.
  var reserve: Reserve?
}

extension ConfigurationReader {
  func allowance(_ reader: JSONReader) -> AllowanceConfiguration {
    var allowance = AllowanceConfiguration()
    if let value = reader.any("reserve") {
      if let count = value.integer, (0...1_000_000_000).contains(count) {
        allowance.reserve = .events(Int(count))
      } else if let text = value.string, let reserve = Self.reserve(text) {
        allowance.reserve = reserve
      } else {
        reader.report(
          "reserve",
          "expected a share of the day's events such as \"20%\", or a number of events of at most "
            + "1000000000")
      }
    }
    reader.finish()
    return allowance
  }

  /// A variable may stand for a number.
  private static func reserve(_ text: String) -> AllowanceConfiguration.Reserve? {
    if let share = AllowanceConfiguration.Reserve(percent: text) { return share }
    guard let count = Int(text), (0...1_000_000_000).contains(count) else { return nil }
    return .events(count)
  }
}
