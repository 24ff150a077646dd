import Avro
import Foundation
import JSON
import Testing

/// Random schemas and data of Python's fastavro, which shares nothing with this decoder.
@Suite struct FastavroTests {
  private static let fixtures = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Fixtures")

  private static func pairs(seed: Int, schemas: Int, data: Int) throws -> [JSONValue] {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [
      "python3", Self.fixtures.appending(path: "avro_pairs.py").path, "\(seed)", "\(schemas)",
      "\(data)",
    ]
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let bytes = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    try #require(process.terminationStatus == 0)
    return try bytes.split(separator: UInt8(ascii: "\n")).map {
      try JSONValue(parsing: Array($0), limits: JSONLimits(depth: 1000))
    }
  }

  @Test(arguments: [1, 2, 3, 4])
  func whatFastavroEncodesComesOutAsItWentIn(seed: Int) throws {
    let cases = try Self.pairs(seed: seed, schemas: 300, data: 10)
    #expect(cases.count == 300)
    var payloads = 0
    for entry in cases {
      let text = try #require(entry["schema"]?.string)
      let schema = try Schema(parsing: Array(text.utf8))
      #expect(schema.canonicalForm == entry["canonical"]?.string)
      #expect(hexadecimal(schema.fingerprint.byteSwapped) == entry["crc"]?.string)
      let again = try Schema(parsing: Array(schema.canonicalForm.utf8))
      #expect(again.canonicalForm == schema.canonicalForm)
      let plan = try DecodePlan(schema)
      for datum in entry["data"]?.array ?? [] {
        let payload = try bytes(of: try #require(datum["payload"]?.string))
        let result = try JSONVisitor.decode(payload, with: plan)
        let value = try JSONValue(
          parsing: Array(result.utf8), limits: JSONLimits(depth: 1000))
        let expected = try #require(datum["json"])
        guard isSame(value, expected) else {
          Issue.record("seed \(seed), \(text): \(result) instead of \(expected.text())")
          return
        }
        payloads += 1
      }
    }
    #expect(payloads == 3000)
  }

  /// Every prefix of a payload is an error, never a value and never a crash; so is one byte more.
  @Test func prefixesOfRandomPayloadsAreErrors() throws {
    for entry in try Self.pairs(seed: 77, schemas: 150, data: 2) {
      let text = try #require(entry["schema"]?.string)
      let plan = try DecodePlan(Schema(parsing: Array(text.utf8)))
      for datum in entry["data"]?.array ?? [] {
        let payload = try bytes(of: try #require(datum["payload"]?.string))
        for length in 0..<min(payload.count, 600) {
          #expect(throws: AvroError.self) {
            try JSONVisitor.decode(Array(payload[..<length]), with: plan)
          }
        }
        let error = try #require(throws: AvroError.self) {
          try JSONVisitor.decode(payload + [0], with: plan)
        }
        #expect(error.code == .trailing)
      }
    }
  }

  /// Bytes changed at random never crash, hang or pass the limits.
  @Test func damagedPayloadsAreValuesOrErrors() throws {
    var random = SplitMix(state: 4711)
    var errors = 0
    for entry in try Self.pairs(seed: 99, schemas: 150, data: 3) {
      let text = try #require(entry["schema"]?.string)
      let plan = try DecodePlan(
        Schema(parsing: Array(text.utf8)), limits: DecodeLimits(items: 10_000))
      for datum in entry["data"]?.array ?? [] {
        let payload = try bytes(of: try #require(datum["payload"]?.string))
        guard !payload.isEmpty else { continue }
        for _ in 0..<20 {
          var damaged = payload
          for _ in 0..<Int.random(in: 1...3, using: &random) {
            damaged[Int.random(in: 0..<damaged.count, using: &random)] =
              .random(in: 0...255, using: &random)
          }
          do { _ = try JSONVisitor.decode(damaged, with: plan) } catch let error as AvroError {
            errors += 1
            let offset = try #require(error.byteOffset)
            #expect((0...damaged.count).contains(offset))
          }
        }
      }
    }
    #expect(errors > 1000)
  }

  /// Numbers with a fraction or an exponent by value, all others by their text.
  private func isSame(_ left: JSONValue, _ right: JSONValue) -> Bool {
    switch (left.content, right.content) {
    case (.number(let left), .number(let right)):
      let isFraction = { (text: String) in text.contains { ".eE".contains($0) } }
      return isFraction(left) && isFraction(right)
        ? Double(left) == Double(right) : left == right
    case (.array(let left), .array(let right)):
      return left.count == right.count && zip(left, right).allSatisfy { self.isSame($0, $1) }
    case (.object(let left), .object(let right)):
      return left.map(\.name) == right.map(\.name)
        && zip(left, right).allSatisfy { self.isSame($0.value, $1.value) }
    default:
      return left == right
    }
  }
}

func bytes(of hexadecimal: String) throws -> [UInt8] {
  let digits = Array(hexadecimal.utf8)
  return try stride(from: 0, to: digits.count, by: 2).map { index in
    try #require(UInt8(String(decoding: digits[index...index + 1], as: UTF8.self), radix: 16))
  }
}

func hexadecimal(_ value: UInt64) -> String {
  let text = String(value, radix: 16)
  return String(repeating: "0", count: 16 - text.count) + text
}

struct SplitMix: RandomNumberGenerator {
  var state: UInt64
  mutating func next() -> UInt64 {
    self.state &+= 0x9E37_79B9_7F4A_7C15
    var value = self.state
    value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
    return value ^ value >> 31
  }
}
