import Avro
import Cryptography
import JSON
import Testing

/// Random schemas and data of Python's fastavro, which shares nothing with this decoder.
@Suite("Payloads from fastavro") struct FastavroTests {
  /// 4 × 625 schemas × 40 data: 100,000 pairs, of which about one in ten is encoded in many blocks.
  @Test("Payloads that fastavro encodes decode to the original values", arguments: [1, 2, 3, 4])
  func roundTrip(seed: Int) throws {
    let stream = try PairStream(seed: seed, schemas: 625, data: 40)
    var plan: DecodePlan?
    var text = ""
    var schemas = 0
    var payloads = 0
    while let frame = try stream.next() {
      switch frame {
      case .schema(let description):
        text = description.schema
        let schema = try Schema(parsing: Array(text.utf8))
        #expect(schema.canonicalForm == description.canonical)
        #expect(hexadecimal(schema.fingerprint.byteSwapped) == description.crc)
        #expect(try schema.md5Fingerprint().hex == description.md5)
        #expect(schema.sha256Fingerprint.hex == description.sha256)
        let again = try Schema(parsing: Array(schema.canonicalForm.utf8))
        #expect(again.canonicalForm == schema.canonicalForm)
        plan = try DecodePlan(schema)
        schemas += 1
      case .pair(let payload, let expected):
        let result = try JSONVisitor.decode(payload, with: #require(plan))
        if result != expected {
          let left = try JSONValue(parsing: result, limits: JSONLimits(depth: 1000))
          let right = try JSONValue(parsing: expected, limits: JSONLimits(depth: 1000))
          guard isSame(left, right) else {
            Issue.record("seed \(seed), \(text): \(result) instead of \(expected)")
            return
          }
        }
        payloads += 1
      }
    }
    #expect(schemas == 625)
    #expect(payloads == 25_000)
  }

  /// All types, logical types and shapes of unions: what fastavro writes, to the byte.
  @Test("Encoded payloads equal those of fastavro", arguments: [11, 12])
  func encodes(seed: Int) throws {
    let stream = try PairStream(seed: seed, schemas: 400, data: 25, encodes: true)
    var encoder: DatumEncoder?
    var text = ""
    var payloads = 0
    while let frame = try stream.next() {
      switch frame {
      case .schema(let description):
        text = description.schema
        encoder = DatumEncoder(try Schema(parsing: Array(text.utf8)), bytes: .base64)
      case .pair(let payload, let json):
        let mistakes = JSONMistakes()
        let value = try JSONValue(parsing: json, limits: JSONLimits(depth: 1000))
        let bytes = try #require(encoder).encode(value, path: "", mistakes: mistakes)
        guard mistakes.isEmpty, bytes == payload else {
          Issue.record("seed \(seed), \(text): \(json): \(mistakes.all) \(bytes), not \(payload)")
          return
        }
        payloads += 1
      }
    }
    #expect(payloads == 10_000)
  }

  /// What comes out of a payload goes in again, unless a union makes it ambiguous: then what comes
  /// out of that is the same all the same.
  @Test("Decoded payloads are encoded to the same bytes") func reencodes() throws {
    let stream = try PairStream(seed: 21, schemas: 300, data: 10)
    var schema: Schema?
    var (same, other, refused) = (0, 0, 0)
    while let frame = try stream.next() {
      switch frame {
      case .schema(let description): schema = try Schema(parsing: Array(description.schema.utf8))
      case .pair(let payload, let json):
        let mistakes = JSONMistakes()
        let schema = try #require(schema)
        let value = try JSONValue(parsing: json, limits: JSONLimits(depth: 1000))
        let bytes = DatumEncoder(schema, bytes: .base64).encode(value, path: "", mistakes: mistakes)
        if !mistakes.isEmpty {
          // NaN comes out as null, which no double is.
          refused += 1
        } else if bytes == payload {
          same += 1
        } else {
          let again = try JSONVisitor.decode(bytes, with: try DecodePlan(schema))
          let result = try JSONValue(parsing: again, limits: JSONLimits(depth: 1000))
          if self.isSame(result, value) { other += 1 }
        }
      }
    }
    #expect(same > 1500, "\(same) the same, \(other) otherwise encoded, \(refused) refused")
  }

  /// Every prefix of a payload is an error, never a value and never a crash; so is one byte more.
  @Test("Every prefix of a random payload is an error") func prefixes() throws {
    try self.forEachPayload(seed: 77, schemas: 150, data: 2) { payload, schema in
      let plan = try DecodePlan(schema)
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

  /// Bytes changed at random never crash, hang or pass the limits.
  @Test("A damaged payload gives values or an error, never a crash") func damaged() throws {
    var random = SplitMix(state: 4711)
    var errors = 0
    try self.forEachPayload(seed: 99, schemas: 150, data: 3) { payload, schema in
      guard !payload.isEmpty else { return }
      let plan = try DecodePlan(schema, limits: DecodeLimits(items: 10_000))
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
    #expect(errors > 1000)
  }

  private func forEachPayload(
    seed: Int, schemas: Int, data: Int, _ body: ([UInt8], Schema) throws -> Void
  ) throws {
    let stream = try PairStream(seed: seed, schemas: schemas, data: data)
    var schema: Schema?
    while let frame = try stream.next() {
      switch frame {
      case .schema(let description): schema = try Schema(parsing: Array(description.schema.utf8))
      case .pair(let payload, _): try body(payload, #require(schema))
      }
    }
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
