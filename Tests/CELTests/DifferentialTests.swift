import CEL
import JSON
import TestSupport
import Testing

@Suite("Comparison with other implementations")
struct DifferentialTests {
  /// It is not built for Python 3.10.
  private static let hasCPlusPlus =
    (try? PythonScript.run("cel_peers.py", ["cel-expr-python", "1", "1"])) != nil

  @Test(
    "Random expressions over random rows have the values that cel-expr-python gives",
    .enabled(if: Self.hasCPlusPlus, "cel-expr-python needs Python 3.11"))
  func agreesWithCPlusPlus() throws { try self.compare(with: "cel-expr-python", count: 4000) }

  @Test("Random expressions over random rows have the values that cel-python gives")
  func agreesWithPython() throws { try self.compare(with: "cel-python", count: 2000) }

  private func compare(with peer: String, count sample: Int) throws {
    let count = ExplorationSize.isFull ? sample * 20 : sample
    let lines = try PythonScript.run("cel_peers.py", [peer, "\(count)", "1"]).split(separator: "\n")
    #expect(lines.count == count)
    var valueCount = 0
    for line in lines {
      let line = try JSONValue(parsing: String(line))
      let source = try #require(line["expression"]?.string)
      let row = try #require(line["row"]).text()
      let theirs = try #require(line["outcome"])
      let ours = outcome(source, row: row)
      if let type = theirs["type"]?.string, let value = theirs["value"] {
        valueCount += 1
        let isEqual = ours == "\(Self.names[type] ?? type) \(Self.normalized(value).text())"
        #expect(isEqual, "\(source) for \(row): \(ours), \(peer) has \(theirs.text())")
      } else {
        let isFailure = ours.hasPrefix("error") || ours == "null ordering"
        #expect(isFailure, "\(source) for \(row): \(ours), \(peer) fails")
      }
    }
    // A generator whose expressions all fail would prove nothing.
    #expect(valueCount > count / 2)
  }

  private static let names = [
    "timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration",
    "null": "null_type",
  ]

  /// Numbers as this program writes them: Python has other exponents.
  private static func normalized(_ value: JSONValue) -> JSONValue {
    switch value.content {
    case .number(let text) where Int64(text) == nil && UInt64(text) == nil:
      Value.double(Double(text) ?? 0).json
    case .array(let elements): .array(elements.map(Self.normalized))
    default: value
    }
  }
}
