import Clocks
internal import Dispatch
import EventLoop
internal import Glibc

/// Messages on their way to a descriptor, which a thread of its own writes: whoever has a message does not
/// wait for a reader who does not read.
///
/// The messages keep their order. When there is no room for one, it is dropped and counted, and
/// so are all after it until the reader has read; then a line says how many.
final class MessageWriter: Sendable {
  private struct State {
    var waiting: [PrintableText] = []
    var byteCount = 0
    /// Messages that came after those that are waiting.
    var dropped = 0
    var isWriting = false
    var hasFailed = false
    /// Nothing was written while somebody waited for it.
    var isStalled = false
    var isStarted = false
    var notice: @Sendable (Int) -> PrintableText = { count in
      PrintableText(line: MessageWriter.sentence(dropped: count), hiding: SecretMask())
    }
  }

  private enum OnMessage { case wait, start, drop }

  /// The messages on standard error.
  static let standardError = MessageWriter(to: StandardStream.error.rawValue)

  /// How long the process waits at its end for messages to be read.
  static let patienceAtExit = Duration.seconds(2)
  /// How long standard output waits for messages that came before.
  private static let patience = Duration.seconds(1)

  private let descriptor: Int32
  private let maxByteCount: Int
  private let state = Lock(State())
  private let hasWork = DispatchSemaphore(value: 0)

  /// - Parameter maxByteCount: the most that waits, beside what is being written.
  init(to descriptor: Int32, maxByteCount: Int = 1 << 18) {
    self.descriptor = descriptor
    self.maxByteCount = maxByteCount
  }

  static func sentence(dropped count: Int) -> String {
    "\(Phrase.count(count, "message")) dropped: nobody was reading them"
  }

  /// Replaces how the number of dropped messages is reported.
  func reportDropped(as notice: @escaping @Sendable (Int) -> PrintableText) {
    self.state.withLock { $0.notice = notice }
  }

  /// Accepts a message without waiting for its reader.
  ///
  /// - Parameter isPassing: another message will take its place, so it is left out without being
  ///   counted while others wait.
  /// - Returns: whether the message was accepted.
  @discardableResult
  func write(_ text: PrintableText, isPassing: Bool = false) -> Bool {
    let size = text.text.utf8.count
    let answer = self.state.withLock { state -> OnMessage in
      if isPassing, state.isWriting || !state.waiting.isEmpty { return .drop }
      let isFull = !state.waiting.isEmpty && state.byteCount + size > self.maxByteCount
      guard state.dropped == 0, !isFull else {
        if !isPassing { state.dropped += 1 }
        return .drop
      }
      state.waiting.append(text)
      state.byteCount += size
      defer { state.isStarted = true }
      return state.isStarted ? .wait : .start
    }
    if answer == .start { self.start() }
    guard answer != .drop else { return false }
    self.hasWork.signal()
    return true
  }

  /// Waits until all messages are written.
  ///
  /// - Returns: false when the reader was too slow, or when a message could not be written.
  @discardableResult
  func drain(within patience: Duration) -> Bool {
    // Whoever reads the messages goes by the machine's clock.
    let clock = ProcessClock()
    let end = clock.now + patience
    while true {
      let (isIdle, hasFailed) = self.state.withLock {
        ($0.waiting.isEmpty && !$0.isWriting, $0.hasFailed)
      }
      if isIdle { return !hasFailed }
      guard clock.now < end else {
        self.state.withLock { $0.isStalled = true }
        return false
      }
      // A semaphore of libdispatch waits by the wall clock, which may be set meanwhile.
      _ = poll(nil, 0, 1)
    }
  }

  /// Lets messages go first that came before something on another stream. Waits once for a reader who does
  /// not read.
  func letGoFirst() {
    let isStalled = self.state.withLock { $0.isStalled }
    if !isStalled { self.drain(within: Self.patience) }
  }

  private func start() {
    if self === Self.standardError {
      atexit { MessageWriter.standardError.drain(within: MessageWriter.patienceAtExit) }
    }
    do {
      try Thread.detach(name: "messages") { [self] in
        while true {
          self.hasWork.wait()
          self.writeWaiting(patience: nil)
        }
      }
    } catch {
      // The limit of threads is what the message is about: it is written here.
      self.writeWaiting(patience: Self.patienceAtExit)
      self.state.withLock { $0.isStarted = false }
    }
  }

  private func writeWaiting(patience: Duration?) {
    let texts = self.state.withLock { state in
      var texts = state.waiting
      if state.dropped > 0 { texts.append(state.notice(state.dropped)) }
      (state.waiting, state.byteCount, state.dropped) = ([], 0, 0)
      state.isWriting = !texts.isEmpty
      return texts
    }
    guard !texts.isEmpty else { return }
    for text in texts {
      let code = text.write(to: self.descriptor, patience: patience)
      self.state.withLock { state in
        state.hasFailed = code != nil
        state.isStalled = false
      }
    }
    self.state.withLock { $0.isWriting = false }
  }
}
