internal import SimulatedOrg

/// The credit of one Subscribe call, without sockets and clocks.
///
/// Source: TheService.md#flow-control, rules 1 to 6; TheService.md#keepalives-and-liveness. Times are epoch milliseconds of
/// the simulator's clock.
struct SubscriptionCredit: Equatable {
  static let most = 100
  /// Without credit the client has this long to ask again.
  static let patience: Int64 = 60_000

  enum Due: Equatable {
    case nothing
    case keepalive
    /// 60 s without credit: the server ends the call.
    case expired
  }

  private(set) var pending = 0
  private(set) var lastResponseAt: Int64

  init(at now: Int64) {
    self.lastResponseAt = now
  }

  /// Additive, and silently limited to 100 outstanding.
  mutating func add(_ requested: Int32) throws(ServiceFault) {
    guard requested > 0 else { throw .requestedEventsInvalid }
    self.pending = min(Self.most, self.pending + Int(requested))
  }

  /// A response with `count` events (0: keepalive) has been handed over.
  mutating func responded(_ count: Int, at now: Int64) {
    precondition(count <= self.pending, "more events than credit")
    self.pending -= count
    self.lastResponseAt = now
  }

  /// When silence leads to something.
  func due(keepaliveInterval: Int64) -> Int64 {
    self.lastResponseAt + (self.pending == 0 ? Self.patience : keepaliveInterval)
  }

  /// What silence until `now` leads to. Without credit, no keepalive is sent either.
  func due(at now: Int64, keepaliveInterval: Int64) -> Due {
    let silence = now - self.lastResponseAt
    if self.pending == 0 { return silence >= Self.patience ? .expired : .nothing }
    return silence >= keepaliveInterval ? .keepalive : .nothing
  }
}
