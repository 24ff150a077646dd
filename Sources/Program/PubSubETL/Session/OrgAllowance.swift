internal import Clocks
import EventLoop
import HTTPClient
import Logging
import Pipeline
import SalesforceREST

/// The org's allowance of delivered events, as the org reports it (RESTAndBulk.md#limits).
struct OrgAllowance: Sendable, Equatable {
  static let name = "DailyDeliveredPlatformEvents"

  /// Events that the service delivers to all subscribers in 24 hours.
  var max: Int64
  /// May be negative.
  var remaining: Int64

  /// - Throws: `RESTError`, or `RunFailure` if the org does not report the figure.
  static func ask(_ client: RESTClient) async throws -> OrgAllowance {
    guard let limit = try await client.limits()[Self.name], limit.max >= 0 else {
      throw RunFailure(
        .allowanceUnknown,
        "the org does not report the limit \(Self.name)")
    }
    return OrgAllowance(max: limit.max, remaining: limit.remaining)
  }

  /// - Parameter mayUse: the maximum number of events of this run; nil without a limit.
  func text(mayUse: Int64?) -> String {
    guard self.remaining > 0 else {
      return "none of \(ProgressLine.grouped(self.max)) delivered events left today; the service "
        + "refuses subscriptions until some are"
    }
    return
      "\(ProgressLine.grouped(self.remaining)) of \(ProgressLine.grouped(self.max)) delivered events "
      + "left today; a run may use "
      + (mayUse.map { "up to \(ProgressLine.grouped($0))" } ?? "as many as are waiting")
  }
}

/// Queries the org's allowance before the first event is fetched and, if there is a reserve,
/// periodically during the run.
final class AllowanceWatch: Sendable {
  /// The figures are minutes late.
  private static let interval = Duration.seconds(300)
  /// The time limit for an answer that the run does not depend on.
  private static let patience = Duration.seconds(5)

  private let client: RESTClient
  private let reserve: AllowanceConfiguration.Reserve?
  private let retry: RetrySchedule
  private let logger: Logger
  private let answers = Lock<(first: OrgAllowance?, last: OrgAllowance?)>((nil, nil))

  /// The org's answer before the run; nil without one.
  var first: OrgAllowance? { self.answers.withLock { $0.first } }
  /// The newest answer.
  var last: OrgAllowance? { self.answers.withLock { $0.last } }

  private func note(_ found: OrgAllowance) {
    self.answers.withLock { $0 = ($0.first ?? found, found) }
  }

  init(_ session: Session, logger: Logger) {
    self.retry = session.retry
    self.reserve = session.configuration.allowance.reserve
    self.logger = logger
    // If the run does not depend on the call, its refusal says nothing about the token.
    self.client = session.connection.makeRESTClient(renews: self.reserve != nil)
  }

  /// - Parameters:
  ///   - outstanding: events that are requested at a time.
  ///   - maxEvents: the maximum number of events that the run takes.
  /// - Returns: the limit for the runner; nil without a reserve.
  /// - Throws: `RunFailure` if less than the reserve is left, or if that cannot be determined.
  func begin(outstanding: Int, maxEvents: Int?) async throws -> DeliveryAllowance? {
    guard let reserve = self.reserve else { return nil }
    let found = try await self.askPatiently()
    self.note(found)
    let kept = reserve.events(of: found.max)
    let allowance = DeliveryAllowance(
      remaining: found.remaining, reserve: kept, outstanding: outstanding)
    let mayUse = allowance.left
    guard !allowance.isSpent else {
      throw RunFailure(
        .allowance,
        "the org has \(ProgressLine.grouped(found.remaining)) of "
          + "\(ProgressLine.grouped(found.max)) delivered events left today; "
          + "allowance.reserve keeps \(ProgressLine.grouped(kept)) for others. A run also needs more "
          + "than the \(Phrase.count(outstanding, "event")) that it requests at a time "
          + "(num_requested for each topic). Run again later, or lower one of these")
    }
    self.say(found, mayUse: min(mayUse, maxEvents.map { Int64($0) } ?? .max))
    return allowance
  }

  /// Runs alongside the run until it is cancelled.
  func watch(_ allowance: DeliveryAllowance?, maxEvents: Int?) async {
    guard let allowance else {
      await self.look(maxEvents: maxEvents)
      return
    }
    while (try? await self.client.clock.sleep(for: Self.interval)) != nil {
      do {
        let found = try await OrgAllowance.ask(self.client)
        allowance.renew(remaining: found.remaining)
        self.note(found)
        self.logger.debug(
          "allowance",
          metadata: ["remaining": .number(found.remaining), "left": .number(allowance.left)])
      } catch {
        // The previous figure still holds, and deliveries since then count.
        self.logger.debug("the org's limits could not be read: \(RunFailure(error).message)")
      }
    }
  }

  /// Queries once, only for the log and the report.
  private func look(maxEvents: Int?) async {
    let client = self.client
    let found = await withTaskGroup(of: Result<OrgAllowance, any Error>?.self) { group in
      group.addTask {
        do { return .success(try await OrgAllowance.ask(client)) } catch { return .failure(error) }
      }
      group.addTask {
        try? await client.clock.sleep(for: Self.patience)
        return nil
      }
      defer { group.cancelAll() }
      return await group.next() ?? nil
    }
    switch found {
    case .success(let found):
      self.note(found)
      self.say(found, mayUse: maxEvents.map { Int64($0) })
    case .failure(let error) where !Task.isCancelled:
      self.logger.info(
        "how many delivered events are left today is not known: \(RunFailure(error).message)")
    case .failure, nil: break
    }
  }

  /// A line for `check`, which also succeeds without it.
  static func line(_ session: Session) async -> String {
    do {
      let configuration = session.configuration
      let found = try await OrgAllowance.ask(session.connection.makeRESTClient())
      let mayUse = configuration.allowance.reserve.map {
        found.remaining <= 0 ? 0 : max(0, found.remaining - $0.events(of: found.max))
      }
      let outstanding = configuration.source.numRequested * configuration.source.topics.count
      if let mayUse, mayUse <= outstanding, found.remaining > 0 {
        return
          "allowance: attention: \(found.text(mayUse: 0)): it asks for \(outstanding) at a time, and "
          + "allowance.reserve leaves no more than \(ProgressLine.grouped(mayUse)); lower it, or run "
          + "again later"
      }
      guard found.remaining > 0 else {
        return "allowance: attention: \(found.text(mayUse: 0)); run again later"
      }
      return "allowance: \(found.text(mayUse: mayUse))"
    } catch {
      return "allowance: not known: \(RunFailure(error).message)"
    }
  }

  private func say(_ found: OrgAllowance, mayUse: Int64?) {
    self.logger.info("\(found.text(mayUse: mayUse))")
  }

  private func askPatiently() async throws -> OrgAllowance {
    var retries = Retries(self.retry)
    while true {
      do {
        return try await OrgAllowance.ask(self.client)
      } catch {
        let failure = RunFailure(error)
        let now = self.client.clock.now
        guard failure.exitCode == .unavailable,
          let delay = retries.failed(at: now, random: .random(in: 0..<1))
        else {
          throw RunFailure(
            word: failure.word, code: failure.exitCode,
            "allowance.reserve cannot be kept, because the org's limits cannot be read: "
              + failure.message + retries.verdict(at: now)
              + (failure.exitCode == .refused
                ? "; grant the run-as user View Setup and Configuration, or remove allowance.reserve"
                : ""))
        }
        try await self.client.clock.sleep(for: delay)
      }
    }
  }
}
