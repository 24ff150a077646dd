internal import Bytes
internal import Cryptography

/// HMAC-SHA-256 of values' canonical texts (`ValueText.appendCanonical`), in hexadecimal digits.
final class HashedText {
  private let code: HMACSHA256
  private var text = ByteBuffer(capacity: 256)
  private var number = DecimalNumber()

  init(key: [UInt8]) { self.code = HMACSHA256(key: key) }

  /// - Parameter lost: the batch's `nonfinite`.
  func append(
    _ cell: UInt64, _ type: ColumnType, _ row: RecordBatch.Row,
    lost: [RecordBatch.NonfiniteNumber], to buffer: inout ByteBuffer
  ) {
    self.text.removeAll()
    ValueText.appendCanonical(cell, type, row, lost: lost, to: &self.text, &self.number)
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: HMACSHA256.byteCount) { code in
      // With a capacity above 0, there is an address.
      guard let start = code.baseAddress else { preconditionFailure("no room for a code") }
      self.code.authenticate(self.text.bytes, into: start)
      for byte in code {
        buffer.append(Self.digit(byte >> 4))
        buffer.append(Self.digit(byte & 15))
      }
    }
  }

  private static func digit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
  }
}
