/// Connects to the addresses of a host one a little after the other, so that one that does not
/// answer costs a moment instead of the whole time allowed (RFC 8305, "Happy Eyeballs"). No I/O, no
/// clock.
///
/// The first address has a head start of `delay`; each failure lets the next one begin at once.
/// Who answers first is used, which the caller decides.
struct ConnectRace {
  typealias Instant = ContinuousClock.Instant

  enum OnStep: Equatable {
    /// Begin to connect to the address of this index, then ask again.
    case connect(Int)
    /// Ask again at this time, or after the next failure.
    case waitUntil(Instant)
    /// All addresses are being tried.
    case wait
    /// None is left.
    case failed
  }

  /// RFC 8305 section 5, "Connection Attempt Delay": the recommended value.
  static let recommendedDelay = Duration.milliseconds(250)

  private let delay: Duration
  /// Attempts that have not begun yet.
  private var waiting: ArraySlice<Int>
  private var running: Set<Int> = []
  /// Before it, the latest attempt has its head start.
  private var next: Instant?

  /// - Parameter families: of the addresses, in the order of the system's preference.
  init(families: [Int32], delay: Duration = Self.recommendedDelay) {
    self.delay = delay
    self.waiting = Self.interleaved(families)[...]
  }

  mutating func step(now: Instant) -> OnStep {
    guard let index = self.waiting.first else { return self.running.isEmpty ? .failed : .wait }
    if let next = self.next, now < next { return .waitUntil(next) }
    self.waiting.removeFirst()
    self.running.insert(index)
    self.next = now + self.delay
    return .connect(index)
  }

  mutating func failed(_ index: Int) {
    self.running.remove(index)
    self.next = nil
  }

  /// The indices so that families alternate, beginning with the preferred one (section 4): if one
  /// family does not work at all here, the second attempt is of the other already.
  private static func interleaved(_ families: [Int32]) -> [Int] {
    var preferred = families.indices.filter { families[$0] == families[0] }[...]
    var others = families.indices.filter { families[$0] != families[0] }[...]
    var order: [Int] = []
    while !preferred.isEmpty || !others.isEmpty {
      if let index = preferred.popFirst() { order.append(index) }
      if let index = others.popFirst() { order.append(index) }
    }
    return order
  }
}
