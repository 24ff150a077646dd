/// A request's body that is read while it is sent, so that its size does not matter.
package protocol HTTPBodySource: Sendable {
  /// Announced as the length of the body.
  var byteCount: Int { get }

  /// Fills as many of `bytes`, at least one, as are at hand from `offset` on. Called by the thread of
  /// the transfer, also for bytes that it had before. An error ends the request.
  func read(into bytes: UnsafeMutableRawBufferPointer, at offset: Int) throws -> Int
}
