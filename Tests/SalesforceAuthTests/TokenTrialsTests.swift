import Testing

@testable import SalesforceAuth

@Suite("Judging refused tokens")
struct TokenTrialsTests {
  /// One token from its login to its refusal.
  struct Life: Sendable {
    var works: Bool
    var duration: Duration = .zero

    static let useless = Self(works: false)
    static let brief = Self(works: true, duration: .seconds(1))
    static let long = Self(works: true, duration: .seconds(900))
    static let lateAndUseless = Self(works: false, duration: .seconds(900))
  }

  struct Case: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var lives: [Life]
    /// The number of refusals of which the last is definite; nil: none is.
    var endsAfter: Int?
  }

  static let cases = [
    Case(
      testDescription: "a service that refuses every token",
      lives: Array(repeating: .useless, count: 9),
      endsAfter: 3),
    Case(
      testDescription: "waiting does not make a token good",
      lives: Array(repeating: .lateAndUseless, count: 9), endsAfter: 3),
    Case(
      testDescription: "sessions that end early, again and again",
      lives: Array(repeating: .brief, count: 299), endsAfter: nil),
    Case(
      testDescription: "sessions that end after a time, again and again",
      lives: Array(repeating: .long, count: 2000), endsAfter: nil),
    Case(
      testDescription: "a token that has worked forgives those before it",
      lives: [.useless, .useless, .brief, .useless, .useless, .long, .useless, .useless],
      endsAfter: nil),
    Case(
      testDescription: "three useless ones after many good ones",
      lives: Array(repeating: .brief, count: 50) + [.useless, .useless, .useless, .brief],
      endsAfter: 53),
    Case(
      testDescription: "logins without end for tokens of a moment",
      lives: Array(repeating: .brief, count: 1000), endsAfter: 300),
    Case(
      testDescription: "now and then one that lasts",
      lives: Array(repeating: Array(repeating: .brief, count: 250) + [.long], count: 5)
        .flatMap { $0 }, endsAfter: nil),
  ]

  @Test(
    "The number of tokens in a row that never worked decides whether a refusal is final",
    arguments: cases)
  func verdict(_ test: Case) {
    var trials = TokenTrials()
    var now = ContinuousClock.now
    var refusals = 0
    for life in test.lives where trials.verdict == nil {
      trials.issued(at: now)
      if life.works { trials.worked() }
      now += life.duration
      trials.refused(at: now)
      refusals += 1
    }
    #expect((trials.verdict == nil ? nil : refusals) == test.endsAfter)
  }

  @Test("A refusal counts once, however many streams share the token")
  func sharedToken() async throws {
    let flow = ScriptedFlow((1...9).map { .success("token-\($0)") })
    let provider = AccessTokenProvider(flow)
    for number in 1...3 {
      let token = try await provider.token().value
      for _ in 0..<20 { #expect(await provider.refused(token) == (number < 3)) }
    }
    #expect(await flow.callCount == 3)
    let error = try await #require(throws: AuthError.self) { _ = try await provider.token() }
    #expect(error.code == .refused)
    #expect(error.message.contains("3 new tokens in a row"))
    #expect(await flow.callCount == 3)
  }

  @Test("A late report about a replaced token does not affect the new one")
  func latecomers() async throws {
    let flow = ScriptedFlow((1...9).map { .success("token-\($0)") })
    let provider = AccessTokenProvider(flow)
    let first = try await provider.token().value
    await provider.refused(first)
    for isLast in [false, true] {
      let token = try await provider.token().value
      await provider.worked(first)
      #expect(await provider.refused(token) == !isLast)
    }
  }

  @Test("One login renews each expired token, any number of times")
  func expiry() async throws {
    let flow = ScriptedFlow((1...50).map { .success("token-\($0)") })
    let provider = AccessTokenProvider(flow)
    for number in 1...50 {
      let token = try await provider.token().value
      await provider.worked(token)
      for _ in 0..<4 { #expect(await provider.refused(token)) }
      #expect(await flow.callCount == number)
    }
  }
}
