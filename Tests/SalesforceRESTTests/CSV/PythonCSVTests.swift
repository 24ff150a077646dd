import FoundationEssentials
import JSON
import SalesforceREST
import TestSupport
import Testing

/// Random texts, and what Python's csv module in strict mode makes of them.
@Suite("CSV against Python")
struct PythonCSVTests {
  struct Sample {
    var text: [UInt8]
    /// Values in hexadecimal; nil where Python refuses the text.
    var rows: [[String]]?
  }

  func samples(_ kind: String, seed: Int, count: Int) throws -> [Sample] {
    let directory = try TemporaryDirectory()
    let file = "\(directory.path)/samples"
    _ = try PythonScript.run("csv_tables.py", [kind, "\(seed)", "\(count)", file])
    var rest = try Data(contentsOf: URL(filePath: file))[...]
    func part() throws -> [UInt8] {
      let count = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
      rest = rest.dropFirst(4)
      try #require(rest.count >= count)
      defer { rest = rest.dropFirst(count) }
      return Array(rest.prefix(count))
    }
    var samples: [Sample] = []
    while !rest.isEmpty {
      let text = try part()
      let rows = try JSONValue(parsing: try part()).array
      samples.append(
        Sample(text: text, rows: rows?.map { ($0.array ?? []).map { $0.string ?? "" } }))
    }
    return samples
  }

  func hexadecimal(_ rows: [[[UInt8]]]) -> [[String]] {
    rows.map { $0.map { $0.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() } }
  }

  /// All kinds of quoting and row ends, cut into pieces of many lengths.
  @Test("Rows that Python writes are read back unchanged", arguments: [1, 2, 3, 4])
  func roundTrip(seed: Int) throws {
    let samples = try self.samples("tables", seed: seed, count: 700)
    #expect(samples.count == 700)
    for (index, sample) in samples.enumerated() {
      let read = CSVText(sample.text)
      #expect(read.error == nil)
      guard self.hexadecimal(read.rows) == sample.rows else {
        Issue.record("seed \(seed): \(String(decoding: sample.text, as: UTF8.self))")
        return
      }
      let pieces = (1...6).map { index * $0 % 61 }
      #expect(CSVText(sample.text, pieces: pieces) == read)
      #expect(CSVText.byteByByte(sample.text) == read)
    }
  }

  /// Python accepts more: quotes within unquoted values, a carriage return alone as a row's end,
  /// rows of different lengths. It accepts all that we accept, and reads the same.
  @Test("Text that Python refuses is refused", arguments: [5, 6, 7])
  func refusals(seed: Int) throws {
    var accepted = 0
    var refusedByBoth = 0
    for sample in try self.samples("texts", seed: seed, count: 4000) {
      let read = CSVText(sample.text)
      let text = String(decoding: sample.text, as: UTF8.self)
      if let error = read.error {
        if sample.rows == nil { refusedByBoth += 1 }
        #expect(
          sample.rows == nil || error.code == .fieldCount || error.code == .malformed, "\(text)")
      } else {
        accepted += 1
        #expect(self.hexadecimal(read.rows) == sample.rows, "\(text)")
      }
    }
    #expect(accepted > 400)
    #expect(refusedByBoth > 400)
  }

  /// Wherever a text is cut in two, rows and errors are the same.
  @Test("Splitting a text anywhere changes neither rows nor errors") func cuts() throws {
    for sample in try self.samples("texts", seed: 8, count: 600) {
      for rowBytes in [1 << 20, 3, 8] {
        let limits = CSVReader.Limits(rowBytes: rowBytes)
        let read = CSVText(sample.text, limits: limits)
        #expect(CSVText.byteByByte(sample.text, limits: limits) == read)
        for length in 0..<sample.text.count {
          #expect(CSVText(sample.text, pieces: [length], limits: limits) == read)
        }
      }
    }
  }
}
