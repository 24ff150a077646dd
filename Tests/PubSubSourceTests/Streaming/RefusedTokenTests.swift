import Clocks
import GRPCCore
import Pipeline
import PubSubAPI
import PubSubTestSupport
import TestSupport
import Testing

@testable import PubSubSource

@Suite("Streams with a refused token")
struct RefusedTokenTests {
  /// One call: what the service answers, then how it ends it.
  struct Call: Sendable {
    enum End: Sendable { case refused, broken }
    var answers: Int
    /// Between two answers.
    var pause = Duration.zero
    var end: End

    static let refused = Self(answers: 0, end: .refused)
    static let answeredThenRefused = Self(answers: 1, end: .refused)
    static let aged = Self(answers: 2, pause: .seconds(61), end: .refused)
    static let broken = Self(answers: 1, end: .broken)
    static let brokenAtOnce = Self(answers: 0, end: .broken)
  }

  struct Case: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var calls: [Call]
    var tokens: [String]
    var reports: [String]
  }

  static let cases = [
    Case(
      testDescription: "a token that is refused at once is replaced at once",
      calls: [.refused, .refused], tokens: ["t1", "t2"], reports: ["t1 refused", "t2 refused"]),
    Case(
      testDescription: "a token that has been answered is tried once more, then replaced",
      calls: [.answeredThenRefused, .refused, .broken], tokens: ["t1", "t1", "t2"],
      reports: ["t1 refused", "t2 worked"]),
    Case(
      testDescription: "answers alone do not make a token good",
      calls: [.answeredThenRefused, .answeredThenRefused, .answeredThenRefused, .refused],
      tokens: ["t1", "t1", "t2", "t2"], reports: ["t1 refused", "t2 refused"]),
    Case(
      testDescription: "a refusal that passes costs no login, however often",
      calls: Array(repeating: [.answeredThenRefused, .broken], count: 6).flatMap { $0 },
      tokens: Array(repeating: "t1", count: 12), reports: Array(repeating: "t1 worked", count: 6)),
    Case(
      testDescription: "tokens that have worked are replaced, however many",
      calls: Array(repeating: [.broken, .refused], count: 8).flatMap { $0 },
      tokens: (1...8).flatMap { ["t\($0)", "t\($0)"] },
      reports: (1...8).flatMap { ["t\($0) worked", "t\($0) refused"] }),
    Case(
      testDescription: "tokens that age during a call are replaced, however many",
      calls: Array(repeating: [.aged, .refused], count: 8).flatMap { $0 },
      tokens: (1...8).flatMap { ["t\($0)", "t\($0)"] },
      reports: (1...8).flatMap { ["t\($0) worked", "t\($0) refused"] }),
    Case(
      testDescription: "a call that breaks without an answer says nothing about its token",
      calls: [.brokenAtOnce, .refused, .brokenAtOnce], tokens: ["t1", "t1", "t2"],
      reports: ["t1 refused"]),
  ]

  @Test("Each call uses the right token and reports how the service judged it", arguments: cases)
  func sequence(_ test: Case) async throws {
    try await StreamHarness.run(StreamHarness(retry: RetrySchedule(giveUpAfter: nil))) { harness in
      for call in test.calls { try await self.play(call, harness) }
      #expect(harness.logins.used == test.tokens)
      #expect(harness.logins.reports == test.reports)
    }
  }

  private func play(_ script: Call, _ harness: StreamHarness) async throws {
    try await self.serve(script, harness)
    harness.clock.advance(by: try await harness.retry().1)
  }

  private func serve(_ script: Call, _ harness: StreamHarness) async throws {
    let (call, _) = try await harness.open()
    for number in 0..<script.answers {
      if number > 0 { harness.clock.advance(by: script.pause) }
      try call.respond(events: 0, pending: 100)
      _ = try await harness.response()
    }
    switch script.end {
    case .refused: call.refuse(.unauthenticated, .authError)
    case .broken: call.end(.unavailable, "RST_STREAM closed stream")
    }
  }

  @Test("A stream without an accepted token ends with the service's reason")
  func exhausted() async throws {
    try await StreamHarness.run(StreamHarness(retry: RetrySchedule(giveUpAfter: nil))) { harness in
      try await self.play(.refused, harness)
      harness.logins.renewNoMore()
      try await self.serve(.refused, harness)
      let failure = try #require(try await harness.ending())
      #expect(failure.disposition == .refused)
      #expect(failure.reason == "service_auth_error")
      #expect(failure.description.contains("new tokens are refused, too"))
      #expect(harness.logins.used == ["t1", "t2"])
    }
  }

  @Test(
    "A stream that is refused with five tokens in a row ends, even if others may work",
    arguments: [[Call.refused], [.answeredThenRefused, .answeredThenRefused]])
  func hopeless(_ calls: [Call]) async throws {
    try await StreamHarness.run(StreamHarness(retry: RetrySchedule(giveUpAfter: nil))) { harness in
      // The first counts no more after a call that was good.
      for call in [Call.refused, .broken] { try await self.play(call, harness) }
      for _ in 0..<4 {
        for call in calls { try await self.play(call, harness) }
      }
      for call in calls.dropLast() { try await self.play(call, harness) }
      try await self.serve(calls[calls.count - 1], harness)
      #expect(try await harness.ending()?.disposition == .refused)
      #expect(harness.logins.used.last == "t6")
    }
  }
}
