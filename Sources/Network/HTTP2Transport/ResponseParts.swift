internal import GRPCCore

/// The response of an RPC as a sequence with one reader.
struct ResponseParts: AsyncSequence, Sendable {
  typealias Element = RPCResponsePart<[UInt8]>
  typealias Failure = any Error

  let stream: ClientStream

  func makeAsyncIterator() -> AsyncIterator { AsyncIterator(stream: self.stream) }

  struct AsyncIterator: AsyncIteratorProtocol {
    let stream: ClientStream
    /// Handed over and not returned yet, last first.
    private var parts: [ResponsePart] = []
    /// Returned, but the stream does not know yet.
    private var takenByteCount = 0
    /// Made for the first compressed message.
    private var inflater: MessageInflater?

    init(stream: ClientStream) { self.stream = stream }

    mutating func next(
      isolation actor: isolated (any Actor)?
    ) async throws(any Error) -> Element? {
      if self.parts.isEmpty {
        self.reportTaken()
        guard let parts = try await self.stream.nextParts(isolation: actor) else { return nil }
        self.parts = parts
      }
      let part = self.parts.removeLast()  // `nextParts` never returns an empty array.
      switch part {
      case .metadata(let metadata): return .metadata(metadata)
      case .status(let status, let metadata): return .status(status, metadata)
      case .message(let message):
        self.takenByteCount += message.wireByteCount
        if ClientStream.mustReport(self.takenByteCount) { self.reportTaken() }
        return .message(message.isCompressed ? try self.inflate(message.bytes) : message.bytes)
      }
    }

    mutating func next() async throws -> Element? { try await self.next(isolation: nil) }

    /// A message that cannot be read ends the RPC.
    private mutating func inflate(_ bytes: [UInt8]) throws -> [UInt8] {
      let inflater = self.inflater ?? MessageInflater()
      self.inflater = inflater
      do throws(RPCError) {
        return try inflater.inflate(bytes, limit: self.stream.maxMessageBytes)
      } catch {
        self.parts.removeAll()
        self.stream.cancel(error)
        throw error
      }
    }

    private mutating func reportTaken() {
      guard self.takenByteCount > 0 else { return }
      self.stream.taken(self.takenByteCount)
      self.takenByteCount = 0
    }
  }
}

/// The request of an RPC: metadata, messages, then `finish`.
struct RequestWriter: ClosableRPCWriterProtocol {
  typealias Element = RPCRequestPart<[UInt8]>

  let stream: ClientStream

  func write(_ element: Element) async throws {
    switch element {
    case .metadata(let metadata): try self.stream.open(metadata)
    case .message(let bytes): try await self.stream.write(bytes)
    }
  }

  func write(contentsOf elements: some Sequence<Element>) async throws {
    for element in elements { try await self.write(element) }
  }

  func finish() async { self.stream.finishWriting() }

  func finish(throwing error: any Error) async {
    let error =
      error as? RPCError
      ?? RPCError(code: .cancelled, message: "The request was interrupted.", cause: error)
    self.stream.cancel(error)
  }
}
