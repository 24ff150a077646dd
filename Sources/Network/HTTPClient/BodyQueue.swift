internal import EventLoop
internal import Glibc

/// Pieces of a body between the transfer's thread, which blocks while the queue is full, and one
/// asynchronous consumer.
final class BodyQueue: ResponseReceiver, @unchecked Sendable {
  // Guard: the state is in a lock; the semaphore is made for several threads.
  static let maxPieces = 2
  static let maxPieceBytes = 256 << 10

  typealias Consumer = CheckedContinuation<[UInt8]?, any Error>

  fileprivate struct State {
    var head: CheckedContinuation<HTTPResponse, any Error>?
    var pieces: [[UInt8]] = []
    /// Waits only while the queue is empty.
    var consumer: Consumer?
    /// The transfer's thread waits for the semaphore, which whoever resets this increments.
    var isProducerBlocked = false
    /// Nobody will take pieces any more.
    var isAbandoned = false
    var outcome: Result<Void, any Error>?
  }

  private let state = Lock(State())
  private let room: UnsafeMutablePointer<sem_t>

  init() {
    self.room = .allocate(capacity: 1)
    self.room.initialize(to: sem_t())
    // Fails only for values that are too large.
    sem_init(self.room, 0, 0)
  }

  deinit {
    sem_destroy(self.room)
    self.room.deinitialize(count: 1)
    self.room.deallocate()
  }

  // MARK: The transfer's side

  /// The continuation is resumed with the head, or with the error that comes instead.
  func expectHead(_ continuation: CheckedContinuation<HTTPResponse, any Error>) {
    self.state.withLock { $0.head = continuation }
  }

  func take(head: HTTPResponse) {
    self.state.withLock { $0.takeHead() }?.resume(returning: head)
  }

  func take(body bytes: UnsafeRawBufferPointer) throws {
    var rest = bytes[...]
    while !rest.isEmpty {
      switch self.state.withLock({ $0.accept(&rest) }) {
      case .stored: break
      case .handOver(let piece, let consumer): consumer.resume(returning: piece)
      case .block: while sem_wait(self.room) != 0, errno == EINTR {}
      case .giveUp: throw CancellationError()
      }
    }
  }

  func end(_ outcome: Result<Void, any Error>) {
    let (head, consumer) = self.state.withLock { state in
      state.outcome = outcome
      defer { state.consumer = nil }
      return (state.takeHead(), state.consumer)
    }
    switch outcome {
    case .success:
      consumer?.resume(returning: nil)
      // A transfer succeeds only after it has passed on the head.
      precondition(head == nil, "a transfer without a head succeeded")
    case .failure(let error):
      head?.resume(throwing: error)
      consumer?.resume(throwing: error)
    }
  }

  // MARK: The consumer's side

  func next(_ consumer: Consumer) {
    let (answer, isRoom) = self.state.withLock { state in
      let answer = state.answer()
      if answer == nil {
        precondition(state.consumer == nil, "two callers of next() at a time")
        state.consumer = consumer
      }
      return (answer, state.unblockProducer())
    }
    if isRoom { sem_post(self.room) }
    if let answer { consumer.resume(with: answer) }
  }

  /// Drops what waits and ends the transfer at its next byte.
  func abandon() {
    let (consumer, isBlocked) = self.state.withLock { state in
      state.isAbandoned = true
      state.pieces = []
      defer { state.consumer = nil }
      return (state.consumer, state.unblockProducer())
    }
    if isBlocked { sem_post(self.room) }
    consumer?.resume(throwing: CancellationError())
  }

  /// For tests: the bytes of each waiting piece.
  var waiting: [Int] { self.state.withLock { $0.pieces.map(\.count) } }
}

extension BodyQueue.State {
  fileprivate enum OnBytes {
    case stored
    case handOver([UInt8], BodyQueue.Consumer)
    case block
    case giveUp
  }

  /// Takes as many of the bytes as one piece has room for.
  fileprivate mutating func accept(_ bytes: inout Slice<UnsafeRawBufferPointer>) -> OnBytes {
    if self.isAbandoned { return .giveUp }
    if let consumer = self.consumer {
      self.consumer = nil
      return .handOver(Array(Self.cut(&bytes, BodyQueue.maxPieceBytes)), consumer)
    }
    if let last = self.pieces.indices.last, self.pieces[last].count < BodyQueue.maxPieceBytes {
      let room = BodyQueue.maxPieceBytes - self.pieces[last].count
      self.pieces[last].append(contentsOf: Self.cut(&bytes, room))
      return .stored
    }
    if self.pieces.count < BodyQueue.maxPieces {
      self.pieces.append(Array(Self.cut(&bytes, BodyQueue.maxPieceBytes)))
      return .stored
    }
    self.isProducerBlocked = true
    return .block
  }

  private static func cut(
    _ bytes: inout Slice<UnsafeRawBufferPointer>, _ count: Int
  ) -> UnsafeRawBufferPointer {
    defer { bytes = bytes.dropFirst(count) }
    return UnsafeRawBufferPointer(rebasing: bytes.prefix(count))
  }

  /// Nil when the consumer has to wait.
  fileprivate mutating func answer() -> Result<[UInt8]?, any Error>? {
    if self.isAbandoned { return .failure(CancellationError()) }
    if !self.pieces.isEmpty { return .success(self.pieces.removeFirst()) }
    return self.outcome?.map { nil }
  }

  /// True when the transfer's thread must be woken.
  fileprivate mutating func unblockProducer() -> Bool {
    guard self.isProducerBlocked,
      self.isAbandoned || self.pieces.count < BodyQueue.maxPieces
    else { return false }
    self.isProducerBlocked = false
    return true
  }

  fileprivate mutating func takeHead() -> CheckedContinuation<HTTPResponse, any Error>? {
    defer { self.head = nil }
    return self.head
  }
}
