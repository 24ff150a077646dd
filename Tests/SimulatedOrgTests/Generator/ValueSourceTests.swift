import Testing

@testable import SimulatedOrg

@Suite struct ValueSourceTests {
  @Test("The longest text is cut between characters, and has the length asked for")
  func hugeTextIsUTF8() {
    let values = ValueSource(mix: GeneratorMix())
    for count in 900...1100 {
      var bytes: [UInt8] = Array("before".utf8)
      values.appendHugeText(byteCount: count, seed: UInt64(count), to: &bytes)
      #expect(bytes.count == count + 6)
      #expect(String(validating: bytes, as: UTF8.self) != nil, "\(count) bytes")
    }
  }
}
