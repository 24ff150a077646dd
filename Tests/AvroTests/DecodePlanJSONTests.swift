import Testing

@testable import Avro

@Suite("Payloads as JSON text")
struct DecodePlanJSONTests {
  private static let schema = #"""
    {"type":"record","name":"Node","fields":[
      {"name":"name","type":"string"},
      {"name":"size","type":["null","double"]},
      {"name":"next","type":["null","Node"]}]}
    """#

  /// `a` with the size 1.5, followed by `b` without.
  private static let payload: [UInt8] = [
    0x02, 0x61,  // "a"
    0x02, 0, 0, 0, 0, 0, 0, 0xF8, 0x3F,  // branch 1, 1.5
    0x02,  // branch 1
    0x02, 0x62,  // "b"
    0x00, 0x00,  // null, null
  ]

  private static func plan(_ schema: String = Self.schema) throws -> DecodePlan {
    try DecodePlan(try Schema(parsing: Array(schema.utf8)))
  }

  @Test("A record is one object, with its fields in the order of the schema")
  func record() throws {
    let (plan, scratch) = (try Self.plan(), DecodeScratch())
    // The scratch memory may have been used before.
    for _ in 0..<2 {
      #expect(
        try plan.json(of: Self.payload, scratch: scratch)
          == #"{"name":"a","size":1.5,"next":{"name":"b","size":null,"next":null}}"#)
    }
  }

  @Test("A root of another type becomes its value", arguments: [(#""long""#, [0x05], "-3")])
  func scalar(schema: String, payload: [UInt8], text: String) throws {
    #expect(try Self.plan(schema).json(of: payload, scratch: DecodeScratch()) == text)
  }

  @Test("A type that is encoded in zero bytes needs no payload")
  func empty() throws {
    #expect(try Self.plan(#""null""#).json(of: [], scratch: DecodeScratch()) == "null")
  }

  @Test("A shorter payload is reported as truncated, and a longer one as having trailing bytes")
  func exact() throws {
    let (plan, scratch) = (try Self.plan(), DecodeScratch())
    for count in 0..<Self.payload.count {
      let error = #expect(throws: AvroError.self) {
        try plan.json(of: Array(Self.payload.prefix(count)), scratch: scratch)
      }
      #expect(error?.code == .truncated)
    }
    let error = #expect(throws: AvroError.self) {
      try plan.json(of: Self.payload + [0], scratch: scratch)
    }
    #expect(error?.code == .trailing)
  }

  @Test("Limits apply to the payload and its depth")
  func limits() throws {
    let schema = try Schema(parsing: Array(Self.schema.utf8))
    for limits in [DecodeLimits(byteCount: Self.payload.count - 1), DecodeLimits(depth: 1)] {
      let plan = try DecodePlan(schema, limits: limits)
      let error = #expect(throws: AvroError.self) {
        try plan.json(of: Self.payload, scratch: DecodeScratch())
      }
      #expect(error?.code == .limitExceeded)
    }
  }
}
