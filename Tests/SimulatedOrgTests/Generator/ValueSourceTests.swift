import Testing

@testable import SimulatedOrg

@Suite("Random values") struct ValueSourceTests {
  @Test("The longest text ends between characters and has the requested length")
  func hugeText() {
    let values = ValueSource(mix: GeneratorMix())
    for count in 900...1100 {
      var bytes: [UInt8] = Array("before".utf8)
      values.appendHugeText(byteCount: count, seed: UInt64(count), to: &bytes)
      #expect(bytes.count == count + 6)
      #expect(String(validating: bytes, as: UTF8.self) != nil, "\(count) bytes")
    }
  }
}
