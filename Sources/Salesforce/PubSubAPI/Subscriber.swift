/// The user of a `SubscriptionLoop`: decides where calls begin and takes what they bring.
package protocol Subscriber: Sendable {
  /// The next call, once one may be made; nil ends the loop.
  func start() async -> SubscriptionCall?

  /// Takes a response, whose credit has been accounted for. The next one is read after this returns.
  ///
  /// - Returns: false to end the call.
  func received(_ view: FetchResponseView) async -> Bool

  /// Called several times a second while a call is open. Must not block.
  ///
  /// - Returns: why the call has to be closed now; nil if it does not.
  func tick(at now: ContinuousClock.Instant) -> SubscriptionEnding?

  /// Decides what follows the end of a call.
  func ended(_ ending: SubscriptionEnding) async -> SubscriptionStep

  /// Learns about the state of the subscription. Must not block.
  func note(_ notice: SubscriptionNotice)
}

/// A call that a `SubscriptionLoop` is to make.
package struct SubscriptionCall: Sendable {
  /// Whether the call begins after a replay ID that the service may refuse.
  package var sentReplayID: Bool
  /// The most events outstanding at first; nil for the loop's window.
  package var window: Int?
  /// Requests more events, after the first request.
  package var addCredit: @Sendable (_ count: Int) -> Void
  /// Closes the request side, after which the service sends nothing else and ends the call. The call
  /// then brings what is under way.
  package var finish: @Sendable () -> Void
  /// Makes the call with the credit of its first request, and returns when it has ended.
  package var make: @Sendable (_ credit: Int, Credentials) async -> SubscriptionEnding

  package init(
    sentReplayID: Bool, window: Int? = nil, addCredit: @escaping @Sendable (Int) -> Void,
    finish: @escaping @Sendable () -> Void,
    make: @escaping @Sendable (Int, Credentials) async -> SubscriptionEnding
  ) {
    self.sentReplayID = sentReplayID
    self.window = window
    self.addCredit = addCredit
    self.finish = finish
    self.make = make
  }
}

/// How a call ended.
package enum SubscriptionEnding: Sendable {
  /// The service or the network ended it, or the service was silent for too long.
  case failed(PubSubError)
  /// Closed on purpose: after a stop, for lack of room, or because the subscriber wanted it.
  case closed
}

/// What follows the end of a call.
package enum SubscriptionStep: Sendable {
  /// Another call: after a failure if and when its error allows it, otherwise at once.
  case reopen
  /// Another call, as after a failure with this error, but without a pause if it is the first in a
  /// row.
  case retry(PubSubError)
  /// Another call after this pause, which does not count as a failure.
  case wait(PubSubError, Duration)
  /// No other call.
  case end
}

/// The state of a subscription.
package enum SubscriptionNotice: Sendable {
  /// The first request has been sent on a live connection.
  case opened
  /// A response has this many events, whether or not they are used. Comes before credit is given.
  case delivered(Int)
  /// The open call has proven useful only by having lasted. Comes before `pausing`.
  case worked
  /// No call is open because of the error; the next one follows after the pause.
  case pausing(PubSubError, Duration)
}
