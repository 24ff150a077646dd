/// What happens to the stream while a commit in flight waits for a store's server.
struct Overlap<Response: SourceResponse> {
  /// Stores are being asked to prepare and commit.
  var isAdvancing = false
  /// Everything taken is to be durable, so nothing more is.
  var isSettling = false
  /// A signal that has been received and is not a response. It comes next.
  var signal: SourceSignal<Response>?
  /// Why an event could not be taken. It ends the run after the commit in flight.
  var failure: (any Error)?

  var mayTake: Bool {
    self.isAdvancing && !self.isSettling && self.signal == nil && self.failure == nil
  }

  mutating func takeSignal() -> SourceSignal<Response>? {
    defer { self.signal = nil }
    return self.signal
  }
}
