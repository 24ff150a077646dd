/// The messages of the interoperability tests (`Tests/Fixtures/interop/interop.proto`) in the wire
/// format of protobuf, as far as the cases need them.
enum InteropMessages {
  /// `SimpleRequest`.
  static func simpleRequest(
    responseSize: Int = 0, payload: Int = 0, status: (code: Int, message: String)? = nil
  ) -> [UInt8] {
    self.integer(2, responseSize) + self.message(3, self.payload(payload))
      + (status.map { self.message(7, self.echoStatus($0.code, $0.message)) } ?? [])
  }

  /// `StreamingInputCallRequest`.
  static func inputRequest(payload: Int) -> [UInt8] { self.message(1, self.payload(payload)) }

  /// `StreamingOutputCallRequest`.
  static func outputRequest(
    _ parameters: [(size: Int, isCompressed: Bool?)], payload: Int = 0,
    intervalMicroseconds: Int = 0,
    status: (code: Int, message: String)? = nil
  ) -> [UInt8] {
    var bytes: [UInt8] = []
    for parameter in parameters {
      bytes += self.message(
        2,
        self.integer(1, parameter.size) + self.integer(2, intervalMicroseconds)
          + (parameter.isCompressed.map { self.message(3, self.integer(1, $0 ? 1 : 0)) } ?? []))
    }
    return bytes + self.message(3, self.payload(payload))
      + (status.map { self.message(7, self.echoStatus($0.code, $0.message)) } ?? [])
  }

  static func outputRequest(
    size: Int, payload: Int = 0, intervalMicroseconds: Int = 0
  ) -> [UInt8] {
    self.outputRequest(
      [(size, nil)], payload: payload, intervalMicroseconds: intervalMicroseconds)
  }

  /// Length of the body of the payload of a response; nil when the bytes are no such response.
  static func payloadByteCount(of response: [UInt8]) -> Int? {
    guard let payload = self.bytes(of: 1, in: response[...]) else {
      return response.isEmpty ? 0 : nil
    }
    return payload.isEmpty ? 0 : self.bytes(of: 2, in: payload)?.count
  }

  /// `StreamingInputCallResponse.aggregated_payload_size`.
  static func aggregatedByteCount(of response: [UInt8]) -> Int? {
    guard response.first == 1 << 3 else { return nil }
    var rest = response[...].dropFirst()
    return self.takeVarint(&rest)
  }

  private static func payload(_ count: Int) -> [UInt8] {
    self.message(2, [UInt8](repeating: 0, count: count))
  }

  private static func echoStatus(_ code: Int, _ message: String) -> [UInt8] {
    self.integer(1, code) + self.message(2, Array(message.utf8))
  }

  private static func integer(_ field: Int, _ value: Int) -> [UInt8] {
    self.varint(field << 3) + self.varint(value)
  }

  private static func message(_ field: Int, _ bytes: [UInt8]) -> [UInt8] {
    self.varint(field << 3 | 2) + self.varint(bytes.count) + bytes
  }

  private static func varint(_ value: Int) -> [UInt8] {
    var (bytes, rest): ([UInt8], Int) = ([], value)
    while rest >= 128 {
      bytes.append(UInt8(rest & 127 | 128))
      rest >>= 7
    }
    return bytes + [UInt8(rest)]
  }

  private static func takeVarint(_ bytes: inout ArraySlice<UInt8>) -> Int? {
    var (value, shift) = (0, 0)
    while let byte = bytes.popFirst(), shift < 63 {
      value |= Int(byte & 127) << shift
      if byte < 128 { return value }
      shift += 7
    }
    return nil
  }

  /// The first field of that number, which must come first.
  private static func bytes(of field: Int, in message: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
    var rest = message
    guard self.takeVarint(&rest) == field << 3 | 2, let count = self.takeVarint(&rest),
      count <= rest.count
    else { return nil }
    return rest.prefix(count)
  }
}
