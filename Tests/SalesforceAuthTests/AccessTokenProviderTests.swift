import Testing

@testable import SalesforceAuth

@Suite("Access token provider")
struct AccessTokenProviderTests {
  let refusal = AuthError(.refused, "no such client")
  let outage = AuthError(.unavailable, "maintenance")

  func error(_ provider: AccessTokenProvider) async throws -> AuthError {
    try await #require(throws: AuthError.self) { _ = try await provider.token() }
  }

  @Test("Many callers share one login") func sharedLogin() async throws {
    let flow = ScriptedFlow([.success("one")], isOpen: false)
    let provider = AccessTokenProvider(flow)
    let values = try await withThrowingTaskGroup(of: String.self) { group in
      for _ in 0..<50 { group.addTask { try await provider.token().value } }
      await flow.arrival()
      await flow.open()
      return try await group.reduce(into: Set<String>()) { $0.insert($1) }
    }
    #expect(values == ["one"])
    #expect(await flow.callCount == 1)
    #expect(await provider.serverDate == 1)
  }

  @Test("A token is kept until it is invalidated") func kept() async throws {
    let flow = ScriptedFlow([.success("one"), .success("two")])
    let provider = AccessTokenProvider(flow)
    #expect(await provider.serverDate == nil)
    let first = try await provider.token()
    #expect(try await provider.token() == first)
    await provider.refused(first.value)
    #expect(try await provider.token().value == "two")
    // A latecomer who still holds the first one.
    await provider.refused(first.value)
    #expect(try await provider.token().value == "two")
    #expect(await flow.callCount == 2)
    #expect(await provider.serverDate == 2)
  }

  @Test("A login service may return the same token again") func repeatedToken() async throws {
    let provider = AccessTokenProvider(ScriptedFlow([.success("one"), .success("one")]))
    await provider.refused(try await provider.token().value)
    #expect(try await provider.token().value == "one")
  }

  @Test("Three refusals end the logins") func refusals() async throws {
    let flow = ScriptedFlow(Array(repeating: .failure(self.refusal), count: 3))
    let provider = AccessTokenProvider(flow)
    for _ in 0..<3 { #expect(try await self.error(provider).message == "no such client") }
    for _ in 0..<3 {
      let error = try await self.error(provider)
      #expect(error.code == .refused)
      #expect(error.message.contains("no more are attempted"))
      #expect(error.message.contains("no such client"))
    }
    #expect(await flow.callCount == 3)
  }

  @Test("Outages do not count as refusals, and a success resets the count") func outages()
    async throws
  {
    let flow = ScriptedFlow([
      .failure(self.refusal), .failure(self.refusal), .failure(self.outage), .success("one"),
      .failure(self.refusal), .failure(self.refusal), .failure(self.outage), .success("two"),
    ])
    let provider = AccessTokenProvider(flow)
    for _ in 0..<2 {
      #expect(try await self.error(provider).code == .refused)
      #expect(try await self.error(provider).code == .refused)
      #expect(try await self.error(provider).code == .unavailable)
      await provider.refused(try await provider.token().value)
    }
    #expect(await flow.callCount == 8)
  }

  @Test(
    "A process waits a limited time for a login that may replace the refresh token",
    .timeLimit(.minutes(1)))
  func settles() async throws {
    for replaces in [true, false] {
      let flow = ScriptedFlow([.success("one")], isOpen: false, replacesSecrets: replaces)
      let provider = AccessTokenProvider(flow)
      await provider.settle(within: .seconds(3600))
      let leaving = Task { try await provider.token() }
      await flow.arrival()
      leaving.cancel()
      _ = await leaving.result
      // Gives up, or does not wait.
      await provider.settle(within: .milliseconds(1))
      if replaces {
        let settling = Task { await provider.settle(within: .seconds(3600)) }
        settling.cancel()
        await flow.open()
        await settling.value
        #expect(try await provider.token().value == "one")
        #expect(await flow.callCount == 1)
      } else {
        await provider.settle(within: .seconds(3600))
        await flow.open()
      }
    }
  }

  @Test("A cancelled caller leaves the login to the others") func cancelledCaller() async throws {
    let flow = ScriptedFlow([.success("one")], isOpen: false)
    let provider = AccessTokenProvider(flow)
    let leaving = Task { try await provider.token() }
    await flow.arrival()
    let staying = Task { try await provider.token() }
    leaving.cancel()
    await #expect(throws: CancellationError.self) { _ = try await leaving.value }
    await flow.open()
    #expect(try await staying.value.value == "one")
    #expect(await flow.callCount == 1)
  }
}
