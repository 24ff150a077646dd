import SalesforceREST

/// Everything a reader makes of a text: rows up to the end or to an error.
struct CSVText: Equatable {
  var rows: [[[UInt8]]] = []
  var error: CSVError?

  /// - Parameter pieces: the lengths of the first pieces; the rest follows in one.
  init(_ text: [UInt8], pieces: [Int] = [], limits: CSVReader.Limits = .init()) {
    var reader = CSVReader(limits: limits)
    var rest = text[...]
    for length in pieces {
      let piece = Array(rest.prefix(length))
      rest = rest.dropFirst(length)
      piece.withUnsafeBytes { reader.append($0) }
      self.read(&reader)
    }
    Array(rest).withUnsafeBytes { reader.append($0) }
    reader.finish()
    self.read(&reader)
  }

  init(_ text: String, pieces: [Int] = [], limits: CSVReader.Limits = .init()) {
    self.init(Array(text.utf8), pieces: pieces, limits: limits)
  }

  static func byteByByte(_ text: [UInt8], limits: CSVReader.Limits = .init()) -> CSVText {
    CSVText(text, pieces: Array(repeating: 1, count: text.count), limits: limits)
  }

  private mutating func read(_ reader: inout CSVReader) {
    do {
      while true {
        switch try reader.next() {
        case .header, .row:
          self.rows.append(
            reader.withRow { row in (0..<row.count).map { Array(row[$0]) } })
        case .needsBytes, .end: return
        }
      }
    } catch {
      self.error = error
    }
  }

  var texts: [[String]] { self.rows.map { $0.map { String(decoding: $0, as: UTF8.self) } } }
}
