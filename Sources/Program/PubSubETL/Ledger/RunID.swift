/// Names a run: random, so that runs of several hosts do not meet.
struct RunID: Sendable, Hashable {
  /// 16 lowercase hexadecimal digits.
  let text: String

  init(_ number: UInt64 = .random(in: .min ... .max)) {
    let digits = String(number, radix: 16)
    self.text = String(repeating: "0", count: 16 - digits.count) + digits
  }

  /// - Returns: nil for a text that no run has been named by.
  init?(text: String) {
    guard text.utf8.count == 16,
      text.utf8.allSatisfy({ byte in
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
          || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
      })
    else { return nil }
    self.text = text
  }
}
