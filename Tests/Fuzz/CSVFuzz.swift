/// Input: a byte of options, a byte that chooses where the text is cut, and a text. The reader
/// makes of it what a plain one makes that holds the whole text, wherever it is cut.
///
/// Compiled together with the reader, so no module is imported.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzCSV(_ data: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let input = Array(UnsafeBufferPointer(start: data, count: count))
  guard input.count >= 2 else { return 0 }
  let text = Array(input.dropFirst(2))
  let limits =
    input[0] & 1 == 0
    ? CSVReader.Limits() : CSVReader.Limits(rowBytes: 24, fields: 1 + Int(input[0] >> 5))
  let expected = PlainCSV(text, limits)
  let whole = ReadCSV(text, limits) { text.count }
  require(whole.rows == expected.rows, "other rows: \(whole.rows.count)")
  require(whole.error?.code == expected.code, "\(String(describing: whole.error))")
  if let error = whole.error {
    require(error.rowNumber == whole.rows.count + 1, "another row: \(error)")
    require((0...text.count).contains(error.byteOffset), "offset of \(text.count): \(error)")
  }
  var state = UInt32(input[1])
  let cut = ReadCSV(text, limits) {
    state = state &* 1_664_525 &+ 1_013_904_223
    // Often a single byte, sometimes none.
    let length = Int(state >> 24) % 16
    return length < 6 ? 1 : length - 6
  }
  require(cut == whole, "cut by \(input[1]): another result")
  return 0
}

private struct ReadCSV: Equatable {
  var rows: [[[UInt8]]] = []
  var error: CSVError?

  init(_ text: [UInt8], _ limits: CSVReader.Limits, length: () -> Int) {
    var reader = CSVReader(limits: limits)
    var rest = text[...]
    var isFinished = false
    do {
      while true {
        switch try reader.next() {
        case .header, .row:
          self.rows.append(reader.withRow { row in (0..<row.count).map { Array(row[$0]) } })
        case .needsBytes:
          require(!isFinished, "more bytes wanted after the last one")
          let piece = Array(rest.prefix(length()))
          rest = rest.dropFirst(piece.count)
          piece.withUnsafeBytes { reader.append($0) }
          if rest.isEmpty {
            reader.finish()
            isFinished = true
          }
        case .end: return
        }
      }
    } catch {
      self.error = error
      let again = Result { () throws(CSVError) in try reader.next() }
      require(again == .failure(error), "an error that goes away: \(error)")
    }
  }
}

/// The same language, read one byte at a time with nothing in mind but its rules.
private struct PlainCSV {
  var rows: [[[UInt8]]] = []
  var code: CSVError.Code?

  init(_ text: [UInt8], _ limits: CSVReader.Limits) {
    let start = text.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
    var position = start
    do throws(Refusal) {
      while position < text.count {
        let row = try Self.row(text, &position, limits, columns: self.rows.first?.count)
        self.rows.append(row)
      }
    } catch {
      self.code = error.code
    }
  }

  private struct Refusal: Error { var code: CSVError.Code }

  private static func row(
    _ text: [UInt8], _ position: inout Int, _ limits: CSVReader.Limits, columns: Int?
  ) throws(Refusal) -> [[UInt8]] {
    let end = position + limits.rowBytes
    var values: [[UInt8]] = []
    func peek() throws(Refusal) -> UInt8? {
      guard position < text.count else { return nil }
      guard position < end else { throw Refusal(code: .limitExceeded) }
      return text[position]
    }
    while true {
      var value: [UInt8] = []
      if try peek() == UInt8(ascii: "\"") {
        position += 1
        while true {
          guard let byte = try peek() else { throw Refusal(code: .truncated) }
          position += 1
          if byte == UInt8(ascii: "\"") {
            guard try peek() == byte else { break }
            position += 1
          }
          value.append(byte)
        }
      } else {
        while let byte = try peek(), ![0x22, 0x2C, 10, 13].contains(byte) {
          value.append(byte)
          position += 1
        }
      }
      let next = try peek()
      guard next == nil || [0x2C, 10, 13].contains(next) else { throw Refusal(code: .malformed) }
      if values.count == columns ?? limits.fields {
        throw Refusal(code: columns == nil ? .limitExceeded : .fieldCount)
      }
      values.append(value)
      if next == UInt8(ascii: ",") {
        position += 1
        continue
      }
      if next == 13 {
        position += 1
        guard try peek() == 10 else { throw Refusal(code: .malformed) }
      }
      if next != nil { position += 1 }
      guard values.count == columns ?? values.count else { throw Refusal(code: .fieldCount) }
      return values
    }
  }
}
