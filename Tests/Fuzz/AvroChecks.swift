import Avro
import JSON

/// Counts and checks what a plan visits: what the decoder promises to those who store it.
struct CheckingVisitor: FieldVisitor {
  private let payload: [UInt8]
  private let slotCount: Int
  private var visited: Set<Int> = []
  private(set) var visits = 0
  /// In the order of the payload.
  private var lastOffset = 0

  init(payload: [UInt8], slotCount: Int) {
    self.payload = payload
    self.slotCount = slotCount
  }

  private mutating func visit(_ slot: Int) {
    require((0..<self.slotCount).contains(slot), "slot \(slot) of \(self.slotCount)")
    require(self.visited.insert(slot).inserted, "slot \(slot) is visited twice")
    self.visits += 1
  }

  private mutating func checkRange(_ offset: Int, _ count: Int) {
    require(count >= 0 && offset >= 0 && offset <= self.payload.count - count, "out of range")
    // Redundant leading bytes of a decimal are left out, so an offset may only go forward.
    require(offset >= self.lastOffset, "not in the order of the payload")
    self.lastOffset = offset
  }

  mutating func scalar(_ slot: Int, _ bits: UInt64) { self.visit(slot) }

  mutating func bytes(_ slot: Int, offset: Int, count: Int) {
    self.visit(slot)
    self.checkRange(offset, count)
  }

  mutating func record(_ slot: Int) { self.visit(slot) }

  mutating func item(_ slot: Int, offset: Int, count: Int) {
    self.checkRange(offset, count)
    require(
      String(validating: self.payload[offset..<offset + count], as: UTF8.self) != nil,
      "an item that is not UTF-8")
  }

  mutating func text(_ slot: Int, _ utf8: UnsafeBufferPointer<UInt8>) {
    self.visit(slot)
    require(String(validating: utf8, as: UTF8.self) != nil, "a text that is not UTF-8")
  }
}

/// Limits at which no input of the fuzzer takes long.
let fuzzLimits = DecodeLimits(byteCount: 1 << 16, depth: 32, items: 5_000, jsonByteCount: 1 << 18)

/// Decodes and checks everything that holds for every schema and payload.
func check(_ payload: [UInt8], _ schema: Schema, _ plan: DecodePlan, nested: DecodePlan) {
  func decode(_ payload: [UInt8], with plan: DecodePlan) throws(AvroError) -> Int {
    var visitor = CheckingVisitor(payload: payload, slotCount: plan.slotCount)
    let scratch = DecodeScratch()
    do {
      try payload.withUnsafeBufferPointer {
        try plan.decode($0, into: &visitor, scratch: scratch)
      }
    } catch let error as AvroError {
      throw error
    } catch {
      fatalError("an error of another kind: \(error)")
    }
    return visitor.visits
  }
  do throws(AvroError) {
    _ = try decode(payload, with: plan)
  } catch {
    guard let offset = error.byteOffset else { fatalError("no offset: \(error)") }
    require((0...payload.count).contains(offset), "offset \(offset) of \(payload.count)")
    require(error.code != .schema, "\(error)")
    return
  }
  // A value ends where it ends: nothing shorter is one, and nothing longer.
  if !payload.isEmpty {
    require((try? decode(payload.dropLast(), with: plan)) == nil, "a prefix is a value")
  }
  require((try? decode(payload + [0], with: plan)) == nil, "a longer one is a value")
  // Flattened or not, the text is the same.
  guard let flat = try? JSONVisitor.decode(payload, with: plan) else {
    fatalError("decoded once and not again")
  }
  do {
    let text = try JSONVisitor.decode(payload, with: nested)
    require(text == flat, "\(flat) flattened, \(text) nested")
    _ = try JSONValue(parsing: text, limits: JSONLimits(depth: 200))
  } catch let error as AvroError {
    // Nested values have limits that flattened ones do not take from.
    require(error.code == .limitExceeded, "\(error)")
  } catch let error as JSONError {
    // A map may hold a key twice.
    require(error.code == .duplicateName, "\(error)")
  } catch {
    fatalError("an error of another kind: \(error)")
  }
}
