import JSON
import Pipeline

/// What a run may use of the org's daily allowance of delivered events (`allowance`).
struct AllowanceConfiguration: KeyedObject, Sendable, Equatable {
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

  static var keys: [Key<Self>] {
    [
      .key(
        "reserve", \.reserve, .reserve,
        "The reserve for the org's other subscribers: a share such as 20%, or a number of "
          + "events. A run does not start below it, and stops in time (exit code 75).",
        example: "20%")
    ]
  }
}

extension Kind<AllowanceConfiguration.Reserve> {
  private static var counts: ClosedRange<Int> { 0...1_000_000_000 }

  fileprivate static var reserve: Self {
    Self(
      .oneOf([
        .integer(from: Self.counts.lowerBound, through: Self.counts.upperBound),
        .text(pattern: "^(100|[0-9]{1,2})%$"), .reference("variable"),
      ])
    ) { reader, name, _ in
      guard let value = reader.any(name) else { return nil }
      // A variable may stand for a number.
      if let count = value.integer.map({ Int($0) }) ?? value.string.flatMap({ Int($0) }),
        Self.counts.contains(count)
      {
        return .events(count)
      }
      if let text = value.string, let share = AllowanceConfiguration.Reserve(percent: text) {
        return share
      }
      reader.report(
        name,
        "expected a share of the day's events such as \"20%\", or a number of events of at most "
          + "1000000000")
      return nil
    }
  }
}
