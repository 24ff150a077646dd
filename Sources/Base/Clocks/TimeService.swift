/// Somebody who skips the waits in which nothing happens, and so has to know what this process waits for.
package protocol TimeService: AnyObject, Sendable {
  /// Time that was skipped.
  var skipped: Duration { get }
  /// Milliseconds to add to the machine's wall clock.
  var wallOffset: Int64 { get }
  /// When to look again for something that nobody announces, usually after `usual`.
  func nextLook(
    from now: ContinuousClock.Instant, after usual: Duration
  ) -> ContinuousClock.Instant
  /// - Throws: `CancellationError`.
  func sleep(until deadline: ContinuousClock.Instant) async throws

  /// A wait begins for something that has no part in the served time.
  func beginWait()
  func endWait()

  /// An event loop begins.
  ///
  /// - Parameter wake: makes it look at the time again.
  /// - Returns: the loop's number.
  func loopBegins(wake: @escaping @Sendable () -> Void) -> Int
  func loopEnds(_ loop: Int)
  /// Called before each wait: when the loop wakes up by itself.
  func loop(_ loop: Int, waitsUntil deadline: ContinuousClock.Instant?)
  /// Some loop waits for this socket from now on.
  func loopsWatch(_ descriptor: Int32)
  func loopsIgnore(_ descriptor: Int32)
}
