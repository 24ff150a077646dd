import GRPCCore
import Testing

@testable import PubSubAPI

/// The tables of ServiceErrors.md.
@Suite("Dispositions of errors") struct DispositionTests {
  static let prefix = "sfdc.platform.eventbus.grpc."

  static func disposition(
    _ status: RPCError.Code, _ code: String?, sentReplayID: Bool = false
  ) -> PubSubError.Disposition {
    let metadata: Metadata = code.map { ["error-code": .string(Self.prefix + $0)] } ?? [:]
    return PubSubError(
      RPCError(code: status, message: "m", metadata: metadata), operation: "Subscribe"
    ).disposition(sentReplayID: sentReplayID)
  }

  @Test(
    "Each error code has its disposition",
    arguments: [
      ("service.unavailable", PubSubError.Disposition.retry(minimumDelay: .zero)),
      ("service.auth.error", .reauthenticate),
      ("service.auth.headers.invalid", .reauthenticate),
      ("service.auth.refresh.invalid", .reauthenticate),
      ("service.protection.triggered", .retry(minimumDelay: .seconds(30))),
      ("service.protection.stream.limit.triggered", .retry(minimumDelay: .seconds(30))),
      ("service.tenant.license", .stop),
      ("concurrent.client.limit.exceeded", .retry(minimumDelay: .seconds(30))),
      ("topic.not.found", .stop),
      ("topic.meta.permission", .stop),
      ("topic.api.unavailable", .retry(minimumDelay: .zero)),
      ("topic.validation.empty", .bug),
      ("schema.meta.permission", .stop),
      ("schema.api.unavailable", .retry(minimumDelay: .zero)),
      ("schema.validation.failed", .bug),
      ("subscription.fetch.replayid.corrupted", .replay),
      ("subscription.fetch.replay.repeated", .retry(minimumDelay: .zero)),
      ("subscription.fetch.requested.events.invalid", .bug),
      ("subscription.fetch.overflow", .retry(minimumDelay: .zero)),
      ("subscription.fetch.topic.mismatch", .bug),
      ("subscription.fetch.request.invalid", .bug),
      ("subscription.topic.cannot.subscribe", .stop),
      ("subscription.limit.exceeded", .quota),
      ("subscription.internal.error", .retry(minimumDelay: .zero)),
    ])
  func codes(code: String, disposition: PubSubError.Disposition) {
    // The code counts, whatever the status.
    for status in [RPCError.Code.unknown, .invalidArgument, .unavailable, .unauthenticated] {
      #expect(Self.disposition(status, code) == disposition)
    }
  }

  @Test("An invalid replay ID is our bug if we sent none")
  func replayID() {
    let code = "subscription.fetch.replayid.validation.failed"
    #expect(Self.disposition(.invalidArgument, code, sentReplayID: true) == .replay)
    #expect(Self.disposition(.invalidArgument, code, sentReplayID: false) == .bug)
  }

  @Test(
    "Without a known code the status decides",
    arguments: [
      (RPCError.Code.unavailable, PubSubError.Disposition.retry(minimumDelay: .zero)),
      (.internalError, .retry(minimumDelay: .zero)), (.unknown, .retry(minimumDelay: .zero)),
      (.cancelled, .retry(minimumDelay: .zero)), (.unauthenticated, .reauthenticate),
      (.permissionDenied, .stop), (.notFound, .stop), (.unimplemented, .stop),
      (.invalidArgument, .bug), (.resourceExhausted, .bug),
      // Calls with one answer have a deadline; a subscription has none.
      (.deadlineExceeded, .retry(minimumDelay: .zero)),
    ])
  func statuses(status: RPCError.Code, disposition: PubSubError.Disposition) {
    #expect(Self.disposition(status, nil) == disposition)
    #expect(Self.disposition(status, "new.code.of.next.year") == disposition)
  }
}
