internal import EventLoop
internal import GRPCCore

/// One RPC between the task that makes it and the loop that moves its bytes.
///
/// The task's side never touches the connection: it changes the shared state and signals
/// `Connections`, once for many changes. The loop's side hands over all parts of a batch of input at
/// once.
final class ClientStream: @unchecked Sendable {
  // Guard: `shared` has its lock; the variables under "Loop only" belong to the loop's thread.

  /// Above this a writer waits until the connection has taken bytes.
  private static let writerLimit = 64 * 1024
  /// Fewer taken bytes than this are reported to the loop once the reader has nothing left.
  private static let takenThreshold = 64 * 1024

  /// What the task wants from the loop.
  struct Signals {
    /// Fields of a request to open.
    var open: [HeaderField]?
    var hasOutput = false
    /// Bytes of messages the application took.
    var takenByteCount = 0
    /// The stream is to end now.
    var isCancelled = false
    /// The task has left the stream for good.
    var isReleased = false
  }

  private enum Outcome {
    /// The parts are complete; the last is a status.
    case finished
    case failed(RPCError)
  }

  private struct Shared {
    var parts: [ResponsePart] = []
    var outcome: Outcome?
    var hasResponded = false
    var reader: CheckedContinuation<Void, Never>?
    var framer = MessageFramer()
    /// Whether a connection has begun to take the body of the request.
    var isOnConnection = false
    var isFinishedWriting = false
    /// Set when nothing written will be sent any more.
    var writeError: RPCError?
    var writers: [UInt64: CheckedContinuation<Void, Never>] = [:]
    var nextWriter: UInt64 = 0
    var signals = Signals()
    var isSignalled = false

    var mustWait: Bool {
      !self.isOnConnection || self.framer.pendingByteCount > ClientStream.writerLimit
    }
  }

  let key: ReceiveWindows.Key
  let path: String
  let waitsForReady: Bool
  /// The limit for one message of the response, after decompression.
  let maxMessageBytes: Int
  private let maxRequestBytes: Int
  /// For requests that are to be compressed.
  private let deflater: Lock<MessageDeflater>?
  private let encoding: String?
  private let connections: Connections
  private let shared = Lock(Shared())

  // Loop only:
  var machine: StreamStateMachine
  private let initialMachine: StreamStateMachine
  var connection: Connection?
  /// In HTTP/2; nil while no connection has it.
  var id: Int32?
  var requestFields: [HeaderField] = []
  /// Whether the request left this process on the present connection.
  var isSent = false
  var replays = 0
  var undelivered: [ResponsePart] = []
  /// Whether the connection will look at it when the batch of input is over.
  var isTouched = false

  init(
    key: ReceiveWindows.Key, path: String, options: CallOptions, maxMessageBytes: Int,
    connections: Connections
  ) {
    self.key = key
    self.path = path
    self.waitsForReady = options.waitForReady ?? false
    self.maxRequestBytes = min(options.maxRequestMessageBytes ?? .max, Int(UInt32.max))
    self.connections = connections
    let deflater = MessageDeflater(options.compression)
    self.deflater = deflater.map { Lock($0) }
    self.encoding = deflater?.encoding
    self.maxMessageBytes = options.maxResponseMessageBytes ?? maxMessageBytes
    self.initialMachine = StreamStateMachine(maxMessageBytes: self.maxMessageBytes)
    self.machine = self.initialMachine
  }

  // MARK: The task's side

  /// The next parts, last first; nil after the last.
  func nextParts(isolation: isolated (any Actor)?) async throws -> [ResponsePart]? {
    while true {
      let step: (parts: [ResponsePart], outcome: Outcome?) = self.shared.withLock { shared in
        var taken: [ResponsePart] = []
        swap(&taken, &shared.parts)
        return (taken, shared.outcome)
      }
      if !step.parts.isEmpty { return step.parts.reversed() }
      switch step.outcome {
      case .finished: return nil
      case .failed(let error): throw error
      case nil: await self.waitForParts(isolation: isolation)
      }
    }
  }

  private func waitForParts(isolation: isolated (any Actor)?) async {
    await withTaskCancellationHandler {
      await withCheckedContinuation(isolation: isolation) { continuation in
        let mustResume = self.shared.withLock { shared in
          guard shared.parts.isEmpty, shared.outcome == nil else { return true }
          precondition(shared.reader == nil, "a response has one reader")
          shared.reader = continuation
          return false
        }
        if mustResume { continuation.resume() }
      }
    } onCancel: {
      self.cancel()
    }
  }

  /// The application has taken messages of this many bytes, prefixes included.
  func taken(_ byteCount: Int) {
    self.signal { $0.takenByteCount += byteCount }
  }

  static func mustReport(_ byteCount: Int) -> Bool { byteCount >= Self.takenThreshold }

  func open(_ metadata: Metadata) throws(RPCError) {
    var fields = try metadata.requestFields()
    if let encoding = self.encoding {
      fields.append(HeaderField(name: "grpc-encoding", value: encoding))
    }
    self.signal { $0.open = fields }
  }

  /// Queues a message and waits until a connection takes the request, and while too much is queued.
  func write(_ message: [UInt8]) async throws {
    guard message.count <= self.maxRequestBytes else {
      throw RPCError(
        code: .resourceExhausted,
        message: "The request message has \(message.count) bytes, the limit is "
          + "\(self.maxRequestBytes).")
    }
    let (bytes, isCompressed) =
      self.deflater?.withLock { ($0.deflate(message), true) } ?? (message, false)
    let mustWait = try self.shared.withLock { shared throws(RPCError) in
      if let error = shared.writeError { throw error }
      guard !shared.isFinishedWriting else {
        throw RPCError(code: .failedPrecondition, message: "The request has been finished.")
      }
      shared.framer.append(bytes, isCompressed: isCompressed)
      return shared.mustWait
    }
    self.signal { $0.hasOutput = true }
    if mustWait { try await self.waitUntilWritable() }
  }

  func finishWriting() {
    self.shared.withLock { $0.isFinishedWriting = true }
    self.signal { $0.hasOutput = true }
  }

  private func waitUntilWritable() async throws {
    let id = self.shared.withLock { shared in
      shared.nextWriter += 1
      return shared.nextWriter
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
        let mustResume = self.shared.withLock { shared in
          guard shared.writeError == nil, shared.mustWait else { return true }
          shared.writers[id] = continuation
          return false
        }
        // A cancellation that came before the line above found no writer.
        if mustResume { continuation.resume() } else if Task.isCancelled { self.wakeWriter(id) }
      }
    } onCancel: {
      self.wakeWriter(id)
    }
    if let error = self.shared.withLock({ $0.writeError }) { throw error }
    if Task.isCancelled { throw RPCError.cancelled() }
  }

  private func wakeWriter(_ id: UInt64) {
    self.shared.withLock { $0.writers.removeValue(forKey: id) }?.resume()
  }

  /// Ends the RPC from the task's side; without effect on one that is complete.
  ///
  /// - Parameter error: what the RPC fails with, marked as `unprocessed` if nothing of the body has left.
  func cancel(_ error: RPCError = .cancelled()) {
    self.end(error, parts: [], isAbandoned: true)
    self.signal { $0.isCancelled = true }
  }

  /// The task will not touch the stream again.
  func release() {
    self.end(.cancelled(), parts: [], isAbandoned: true)
    self.signal { $0.isReleased = true }
  }

  private func signal(_ change: (inout Signals) -> Void) {
    let mustPost = self.shared.withLock { shared in
      change(&shared.signals)
      defer { shared.isSignalled = true }
      return !shared.isSignalled
    }
    if mustPost { self.connections.post { $0.attend(to: self) } }
  }

  // MARK: The loop's side

  func takeSignals() -> Signals {
    self.shared.withLock { shared in
      defer { shared.signals = Signals() }
      shared.isSignalled = false
      return shared.signals
    }
  }

  /// Hands parts to the reader.
  func deliver(_ parts: [ResponsePart]) {
    let reader = self.shared.withLock { shared -> CheckedContinuation<Void, Never>? in
      guard shared.outcome == nil else { return nil }
      shared.hasResponded = true
      if shared.parts.isEmpty { shared.parts = parts } else { shared.parts += parts }
      defer { shared.reader = nil }
      return shared.reader
    }
    reader?.resume()
  }

  /// The response is complete with `parts`.
  func finish(_ parts: [ResponsePart]) {
    self.end(nil, parts: parts, isAbandoned: false)
  }

  /// The response is broken off; parts delivered before can still be read.
  func fail(_ error: RPCError, parts: [ResponsePart] = []) {
    self.end(error, parts: parts, isAbandoned: false)
  }

  /// - Parameters:
  ///   - error: nil for a response that is complete.
  ///   - isAbandoned: by the task: parts that it has not read are discarded.
  private func end(_ error: RPCError?, parts: [ResponsePart], isAbandoned: Bool) {
    let (reader, writers) = self.shared.withLock { shared in
      // From now on nothing of the body leaves: see `read(into:)`.
      let isUnsent = isAbandoned && !shared.isOnConnection && !shared.hasResponded
      let error = isUnsent ? error?.unprocessed() : error
      if shared.outcome == nil {
        shared.outcome = error.map { .failed($0) } ?? .finished
        if isAbandoned { shared.parts = [] } else { shared.parts += parts }
      }
      if shared.writeError == nil {
        shared.writeError =
          error ?? RPCError(code: .cancelled, message: "The server has ended the RPC.")
        shared.framer.clear()
      }
      defer {
        shared.reader = nil
        shared.writers.removeAll()
      }
      return (shared.reader, Array(shared.writers.values))
    }
    reader?.resume()
    for writer in writers { writer.resume() }
  }

  /// Nothing of the request will be needed again.
  func forgetSentMessages() {
    self.shared.withLock { $0.framer.forgetSent() }
  }

  /// Makes the stream as new, for another connection; false when that is not possible.
  func rewind() -> Bool {
    guard !self.machine.hasResponded else { return false }
    let canRewind = self.shared.withLock { shared in
      guard shared.framer.canRewind, shared.outcome == nil else { return false }
      shared.framer.rewind()
      shared.isOnConnection = false
      return true
    }
    guard canRewind else { return false }
    self.machine = self.initialMachine
    self.connection = nil
    self.id = nil
    self.isSent = false
    self.undelivered.removeAll()
    return true
  }
}

extension ClientStream: RequestBody {
  func read(into buffer: UnsafeMutableRawBufferPointer) -> RequestBodyRead {
    let (result, writers) = self.shared.withLock {
      shared -> (RequestBodyRead, [CheckedContinuation<Void, Never>]) in
      guard shared.writeError == nil else { return (.nothingYet, []) }
      shared.isOnConnection = true
      let count = shared.framer.read(into: buffer)
      let isEmpty = shared.framer.pendingByteCount == 0
      var writers: [CheckedContinuation<Void, Never>] = []
      if !shared.mustWait, !shared.writers.isEmpty {
        writers = Array(shared.writers.values)
        shared.writers.removeAll()
      }
      let isEnd = shared.isFinishedWriting && isEmpty
      guard count > 0 || isEnd else { return (.nothingYet, writers) }
      return (.bytes(count, isEnd: isEnd), writers)
    }
    for writer in writers { writer.resume() }
    return result
  }
}
