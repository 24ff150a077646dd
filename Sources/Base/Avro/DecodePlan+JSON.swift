internal import Bytes

extension DecodePlan {
  /// A payload as JSON text, without flattening: one text per type; NaN and infinities are `null`.
  ///
  /// - Parameters:
  ///   - payload: one value in binary encoding, without container or marker.
  ///   - scratch: reused from payload to payload.
  /// - Throws: code `truncated`, `malformed`, `limitExceeded` or `trailing`, with field path and
  ///   byte offset.
  public func json(of payload: [UInt8], scratch: DecodeScratch) throws(AvroError) -> String {
    try payload.withUnsafeBufferPointer { payload throws(AvroError) in
      guard payload.count <= self.limits.byteCount else { throw self.tooLarge(payload.count) }
      scratch.itemBudget = self.limits.items
      scratch.textBudget = self.limits.jsonByteCount
      // An empty payload may have no address. Any other will do, because nothing is read.
      let start =
        payload.baseAddress ?? UnsafeRawPointer(self.steps).assumingMemoryBound(to: UInt8.self)
      let cursor = AvroCursor(payload, start: start)
      let next = try self.transcode(self.root, from: start, cursor, scratch)
      guard next == cursor.end else { throw self.trailing(cursor, at: next) }
      return String(decoding: scratch.text.bytes, as: UTF8.self)
    }
  }
}
