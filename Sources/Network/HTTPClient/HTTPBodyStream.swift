/// An answer whose body is received while it is read.
///
/// At most two pieces wait; while they do, the transfer pauses, so that the server sends no more
/// than fits into the buffers of the connection. When the object goes, the transfer and its thread
/// end within a second.
package final class HTTPBodyStream: Sendable {
  /// Status and headers; its body is empty.
  package let response: HTTPResponse
  private let queue: BodyQueue
  private let transfer: CurlTransfer

  static let threadName = "https-body"

  init(response: HTTPResponse, queue: BodyQueue, transfer: CurlTransfer) {
    self.response = response
    self.queue = queue
    self.transfer = transfer
  }

  deinit { self.cancel() }

  /// The next piece of the body, decompressed: 1 byte to 256 KiB, whatever has arrived. Nil after
  /// the last one. One caller at a time.
  ///
  /// Throws `HTTPError` when the body is cut short or stalls, after what was received before, and
  /// again when called again. Throws `CancellationError` when the task is cancelled, which ends
  /// the transfer.
  package func next() async throws -> [UInt8]? {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { self.queue.next($0) }
    } onCancel: {
      self.cancel()
    }
  }

  /// The beginning of a body that explains a refusal: up to the piece that exceeds 64 KiB.
  package func errorBody() async throws -> [UInt8] {
    var body: [UInt8] = []
    while body.count < 1 << 16, let piece = try await self.next() { body += piece }
    return body
  }

  private func cancel() {
    self.transfer.cancel()
    self.queue.abandon()
  }
}
