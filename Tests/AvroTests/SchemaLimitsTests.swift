import Avro
import Testing

/// Schemas that would take much time or memory. The time limits are there for what hangs.
@Suite("Limits of schemas") struct SchemaLimitsTests {
  private func failure(_ text: String) throws -> AvroError {
    try #require(throws: AvroError.self) { try Schema(parsing: Array(text.utf8)) }
  }

  @Test("The sizes in a schema are limited") func sizes() {
    func code(_ text: String, _ limits: SchemaLimits) -> AvroError.Code? {
      do throws(AvroError) {
        _ = try Schema(parsing: Array(text.utf8), limits: limits)
        return nil
      } catch {
        return error.code
      }
    }
    let nested = { (depth: Int) in
      String(repeating: #"{"type":"array","items":"#, count: depth) + #""int""#
        + String(repeating: "}", count: depth)
    }
    #expect(throws: Never.self) { try Schema(parsing: Array(nested(64).utf8)) }
    #expect(code(nested(65), SchemaLimits()) == .limitExceeded)
    #expect(code(nested(100_000), SchemaLimits()) == .limitExceeded)
    let wide =
      #"{"type":"record","name":"R","fields":["#
      + (0..<300).map { #"{"name":"f\#($0)","type":"int"}"# }.joined(separator: ",") + "]}"
    #expect(code(wide, SchemaLimits(elements: 500)) == .limitExceeded)
    #expect(code(wide, SchemaLimits(byteCount: 100)) == .limitExceeded)
    let name = String(repeating: "n", count: 513)
    for text in [
      #"{"type":"fixed","name":"\#(name)","size":1}"#,
      #"{"type":"fixed","name":"F","namespace":"\#(name)","size":1}"#,
      #"{"type":"enum","name":"E","symbols":["\#(name)"]}"#,
      #"{"type":"record","name":"R","fields":[{"name":"\#(name)","type":"int"}]}"#,
    ] {
      #expect(code(text, SchemaLimits()) == .limitExceeded)
      #expect(code(text, SchemaLimits(nameByteCount: 600)) == nil)
    }
  }

  /// Each level tries two records, each of which tries two records: 2^n without a budget.
  @Test("Defaults that take exponential time to check are refused") func exponentialDefaults() {
    let union = #"["A","B","int"]"#
    let value =
      String(repeating: #"{"x":"#, count: 45) + "\"no\"" + String(repeating: "}", count: 45)
    let text =
      #"[{"type":"record","name":"A","fields":[{"name":"x","type":["A",{"type":"record","name":"B","#
      + #""fields":[{"name":"x","type":\#(union)}]},"int"]},"#
      + #"{"name":"y","type":\#(union),"default":\#(value)}]},"null"]"#
    #expect(throws: AvroError.self) { try Schema(parsing: Array(text.utf8)) }
  }

  @Test("A million fields are refused before they are read", .timeLimit(.minutes(1)))
  func millionFields() throws {
    var text = #"{"type":"record","name":"R","fields":["#
    text.reserveCapacity(32 << 20)
    for index in 0..<1_000_000 {
      if index > 0 { text += "," }
      text += #"{"name":"f"#
      text += String(index)
      text += #"","type":"int"}"#
    }
    text += "]}"
    let error = try self.failure(text)
    #expect(error.code == .limitExceeded)
    #expect(error.message.contains("\(4 << 20)"))
  }

  /// As much as the limits let through, of the kinds that take most.
  @Test(
    "Megabytes of meaningless text end in a short error", .timeLimit(.minutes(1)),
    arguments: [
      // 2 million values, no schema.
      "[" + String(repeating: "0,", count: 2_000_000) + "0]",
      #"{"type":"fixed","name":"F","size":1,"unknown":["#
        + String(repeating: "0,", count: 2_000_000) + "0]}",
      // A union of more branches than a schema may have types.
      "[" + String(repeating: #""int","#, count: 400_000) + #""int"]"#,
      // An unknown name of megabytes, and a text of megabytes that cannot be a name.
      "\"" + String(repeating: "x", count: 4_000_000) + "\"",
      #"{"type":"enum","name":"E","symbols":["\#(String(repeating: "-", count: 4_000_000))"]}"#,
      #"{"type":"enum","name":"E","symbols":["A"],"default":"\#(String(repeating: "é", count: 2_000_000))"}"#,
    ])
  func meaninglessText(text: String) {
    do throws(AvroError) {
      _ = try Schema(parsing: Array(text.utf8))
    } catch {
      #expect(error.description.utf8.count < 1000)
    }
  }

  /// Branches times bytes of the default, without a budget for the text: 10^11 steps.
  @Test("A long default against many branches is refused", .timeLimit(.minutes(1)))
  func longDefaults() throws {
    let size = 1 << 20
    let branches = (0..<40_000).map { #"{"type":"fixed","name":"F\#($0)","size":\#(size - 1)}"# }
    let value = String(repeating: "x", count: size)
    let error = try self.failure(
      #"{"type":"record","name":"R","fields":[{"name":"f","type":[\#(branches.joined(separator: ","))],"#
        + #""default":"\#(value)"}]}"#)
    #expect(error.code == .schema)
    #expect(error.message.contains("too long to check"))
    #expect(error.path == "/fields/0/default")
  }

  @Test("Defaults of large records are checked", .timeLimit(.minutes(1)))
  func largeRecordDefaults() throws {
    func record(_ count: Int, missing: Int?) -> String {
      let fields = (0..<count).map { #"{"name":"f\#($0)","type":"int"}"# }
      let values = (0..<count).filter { $0 != missing }.map { #""f\#($0)":\#($0)"# }
      return #"{"type":"record","name":"R","fields":[{"name":"r","type":{"type":"record","#
        + #""name":"S","fields":[\#(fields.joined(separator: ","))]},"#
        + #""default":{\#(values.joined(separator: ","))}}]}"#
    }
    #expect(throws: Never.self) {
      try Schema(parsing: Array(record(20_000, missing: nil).utf8))
    }
    #expect(try self.failure(record(20_000, missing: 19_999)).message.contains("f19999"))
  }

  /// Short references to long names: the canonical form is longer than the text, but bounded.
  @Test("Long namespaces do not multiply the size of a schema", .timeLimit(.minutes(1)))
  func namespaces() throws {
    let space = String(repeating: "n", count: 500)
    let fields = (0..<2000).map { #"{"name":"f\#($0)","type":"F"}"# }
    let text =
      #"{"type":"record","name":"R","namespace":"\#(space)","fields":[{"name":"f","type":"#
      + #"{"type":"fixed","name":"F","size":1}},\#(fields.joined(separator: ","))]}"#
    let form = try Schema(parsing: Array(text.utf8)).canonicalForm
    #expect(form.utf8.count < text.utf8.count * 20)
    let long = text.replacing(space, with: String(repeating: "n", count: 1_000_000))
    #expect(try self.failure(long).code == .limitExceeded)
  }

  /// Compiling looks at each branch once, not once per branch.
  @Test("A union of thousands of branches compiles", .timeLimit(.minutes(1)))
  func largeUnions() throws {
    let branches = (0..<30_000).map { #"{"type":"fixed","name":"F\#($0)","size":1}"# }
    let schema = try Schema(
      parsing: Array(#"["null",\#(branches.joined(separator: ","))]"#.utf8))
    let plan = try DecodePlan(schema)
    // Branch 20,000, zig-zag 40,000.
    #expect(try JSONVisitor.decode([0xC0, 0xB8, 0x02, 7], with: plan) == #""Bw==""#)
  }
}
