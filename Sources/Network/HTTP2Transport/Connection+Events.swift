internal import GRPCCore

// Passes what the HTTP/2 session has found in the bytes received to the streams.
extension Connection {
  func handle(_ event: HTTP2Event) {
    switch event {
    case .headers(let id, let fields, let endsStream):
      guard let stream = self.streams[id] else { return }
      let hadResponded = stream.machine.hasResponded
      self.perform(stream.machine.receivedHeaders(fields, endsStream: endsStream), on: stream, id)
      if !hadResponded, stream.machine.hasResponded {
        self.connections.answered(self)
        stream.forgetSentMessages()
      }
    case .data(let id, let bytes): self.received(bytes, on: id)
    case .endOfStream(let id):
      guard let stream = self.streams[id] else { return }
      self.perform(stream.machine.receivedEndOfStream(), on: stream, id)
    case .headersTooLong(let id):
      guard let stream = self.streams[id] else { return }
      let error = RPCError(
        code: .resourceExhausted,
        message: "The server sent header fields of more than "
          + "\(self.configuration.maxHeaderListBytes) bytes.")
      self.perform(stream.machine.closed(error), on: stream, id)
    case .streamClosed(let id, let errorCode):
      self.finished.remove(id)
      if let stream = self.streams[id] { self.closed(stream, id, errorCode) }
    case .requestSent(let id): self.streams[id]?.isSent = true
    case .requestNotSent(let id):
      guard let stream = self.streams[id] else { return }
      self.remove(stream, id)
      let reason = self.farewell.map { ": \($0)" } ?? ""
      self.connections.replay(
        stream,
        error: RPCError(
          code: .unavailable,
          message: "\(self.configuration.endpoint) accepts no more streams\(reason)."))
    case .settings: self.becameReady()
    case .pingAcknowledged: self.keepalive?.pingAcknowledged(jitter: .random(in: 0...1))
    case .goAway(let errorCode, let debugText):
      let reason = debugText.isEmpty ? "" : ": '\(debugText)'"
      self.connections.keepalivePace.peerLeft(errorCode: errorCode)
      self.farewell = "the server sent GOAWAY (\(errorCode)\(reason))"
      self.drain()
    }
  }

  private func received(_ bytes: UnsafeRawBufferPointer, on id: Int32) {
    guard let stream = self.streams[id] else {
      self.windows.received(bytes.count, on: nil)
      return
    }
    self.windows.received(bytes.count, on: stream.key)
    self.touch(stream)
    let result = stream.machine.receivedData(bytes) { message in
      self.windows.completed(message.wireByteCount, on: stream.key)
      stream.undelivered.append(.message(message))
    }
    self.perform(result, on: stream, id)
  }

  private func closed(_ stream: ClientStream, _ id: Int32, _ errorCode: HTTP2ErrorCode) {
    let error = RPCError(streamResetWith: errorCode)
    if errorCode == .refusedStream, !stream.machine.hasResponded {
      self.remove(stream, id)
      self.connections.replay(stream, error: error)
    } else {
      self.perform(stream.machine.closed(error), on: stream, id)
      self.finished.remove(id)
    }
  }

  private func perform(
    _ result: StreamStateMachine.OnEvent, on stream: ClientStream, _ id: Int32
  ) {
    switch result {
    case .none: return
    case .metadata(let metadata):
      stream.undelivered.append(.metadata(metadata))
      self.windows.grow(stream.key)
      self.touch(stream)
      return
    case .status(let status, let metadata):
      stream.finish(stream.undelivered + [.status(status, metadata)])
    case .fail(let error): stream.fail(error, parts: stream.undelivered)
    }
    stream.undelivered.removeAll()
    self.remove(stream, id)
    // Until the event that the stream is closed: the request may still be under way.
    self.finished.insert(id)
  }
}
