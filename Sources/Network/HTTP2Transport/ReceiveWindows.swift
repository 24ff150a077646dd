/// How much the peer may send: flow control of HTTP/2 (RFC 9113 section 5.2) as backpressure.
///
/// Complete messages that the application has not taken hold the window, so a slow consumer stops
/// its stream. The bytes of an incomplete message are given back on arrival: nobody can take it
/// before it is whole, so a message larger than the window would wait for ever. What was given back
/// for a message is made up for later, by giving back less, once it is whole.
///
/// A stream begins with a small window and gets a large one out of a budget shared by all streams
/// of the connection; what is held counts against the window of the connection only up to the
/// stream's own, and never up to the last sixteenth. So a stream that nobody reads cannot keep
/// others from moving, whatever order the application reads them in. Unread bytes are at most the
/// windows of the streams plus one message of maximal length for each.
struct ReceiveWindows {
  /// Names a stream beyond its end in HTTP/2, as long as the application has messages of it.
  typealias Key = UInt64

  private struct Window {
    /// Aim for how much may be on its way or held.
    var size: Int
    var received = 0
    /// In complete messages that were not taken.
    var held = 0
    /// What the peer was allowed to send in all.
    var advertised: Int

    init(size: Int) {
      self.size = size
      self.advertised = size
    }

    /// What to allow in addition, at least `threshold`; 0 for not yet.
    mutating func update(threshold: Int, held: Int) -> Int {
      let increment = self.received - held + self.size - self.advertised
      guard increment >= max(threshold, 1) else { return 0 }
      self.advertised += increment
      return increment
    }
  }

  private let initialStreamBytes: Int
  private let maxStreamBytes: Int
  private var connection: Window
  private var streams: [Key: Window] = [:]
  /// Sum of the sizes of the windows of streams.
  private var granted = 0
  /// Sum over the streams of what they hold, each at most its size.
  private var heldWithinSizes = 0

  /// - Parameters:
  ///   - initialStreamBytes: the SETTINGS_INITIAL_WINDOW_SIZE that was sent to the peer.
  ///   - maxStreamBytes: what a stream may grow to.
  ///   - connectionBytes: the window of the connection, already announced.
  init(initialStreamBytes: Int, maxStreamBytes: Int, connectionBytes: Int) {
    self.initialStreamBytes = initialStreamBytes
    self.maxStreamBytes = max(maxStreamBytes, initialStreamBytes)
    self.connection = Window(size: connectionBytes)
  }

  /// Part of the connection's window that is never held.
  private var reserve: Int { max(self.connection.size / 16, 1) }

  mutating func open(_ key: Key) {
    self.streams[key] = Window(size: self.initialStreamBytes)
    self.granted += self.initialStreamBytes
  }

  /// The server answers on this stream: it gets a larger window as far as the budget allows.
  mutating func grow(_ key: Key) {
    guard var window = self.streams[key] else { return }
    let available = self.connection.size - self.reserve - self.granted
    let growth = min(self.maxStreamBytes - window.size, available)
    guard growth > 0 else { return }
    self.change(&window) { $0.size += growth }
    self.granted += growth
    self.streams[key] = window
  }

  /// `byteCount` bytes of a body came in; nil for a stream that was forgotten.
  mutating func received(_ byteCount: Int, on key: Key?) {
    self.connection.received += byteCount
    if let key { self.streams[key]?.received += byteCount }
  }

  /// Bytes that came in belong to a message that is now complete.
  mutating func completed(_ byteCount: Int, on key: Key) {
    guard var window = self.streams[key] else { return }
    self.change(&window) { $0.held += byteCount }
    self.streams[key] = window
  }

  /// The application took messages of `byteCount` bytes, prefixes included.
  mutating func taken(_ byteCount: Int, on key: Key) {
    guard var window = self.streams[key] else { return }
    precondition(byteCount <= window.held, "took \(byteCount) of \(window.held) bytes held")
    self.change(&window) { $0.held -= byteCount }
    self.streams[key] = window
  }

  /// Nobody will take anything of this stream any more.
  mutating func close(_ key: Key) {
    guard let window = self.streams.removeValue(forKey: key) else { return }
    self.granted -= window.size
    self.heldWithinSizes -= min(window.held, window.size)
  }

  /// Increment for a WINDOW_UPDATE of the stream, 0 for none.
  mutating func updateForStream(_ key: Key) -> Int {
    guard let window = self.streams[key] else { return 0 }
    return self.streams[key]?.update(threshold: window.size / 4, held: window.held) ?? 0
  }

  /// Increment for a WINDOW_UPDATE of the connection, 0 for none.
  mutating func updateForConnection() -> Int {
    let held = min(self.heldWithinSizes, self.connection.size - self.reserve)
    // Below the reserve: else what is free beside the held bytes might never reach it.
    return self.connection.update(threshold: self.reserve / 2, held: held)
  }

  private mutating func change(_ window: inout Window, _ body: (inout Window) -> Void) {
    self.heldWithinSizes -= min(window.held, window.size)
    body(&window)
    self.heldWithinSizes += min(window.held, window.size)
  }
}
