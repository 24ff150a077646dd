internal import Glibc

extension CSVReader {
  private static var quote: UInt8 { UInt8(ascii: "\"") }
  private static var comma: UInt8 { UInt8(ascii: ",") }
  private static var lineFeed: UInt8 { 10 }
  private static var carriageReturn: UInt8 { 13 }

  /// Reads until the end of the row or of the bytes.
  mutating func scan() throws(CSVError) -> Step {
    let bytes = self.buffer.start
    if self.mode == .byteOrderMark, !self.skipByteOrderMark() { return .needsBytes }
    let end = min(self.buffer.count, self.rowStart + self.limits.rowBytes)
    var position = self.position
    var mode = self.mode
    while position < end {
      switch mode {
      case .byteOrderMark, .valueStart:
        let isQuoted = bytes[position] == Self.quote
        if isQuoted { position += 1 }
        mode = isQuoted ? .quoted : .unquoted
        self.valueStart = position
        self.valueEnd = position
      case .quoted:
        let quote = Self.firstQuote(in: bytes, position, end)
        let count = quote - position
        if self.valueEnd != position {
          memmove(bytes + self.valueEnd, bytes + position, count)
        }
        self.valueEnd += count
        position = quote
        if position < end {
          position += 1
          mode = .closingQuote
        }
      case .closingQuote:
        let byte = bytes[position]
        if byte == Self.quote {
          bytes[self.valueEnd] = byte
          self.valueEnd += 1
          mode = .quoted
        } else if !self.isSeparator(byte) {
          throw self.error(.malformed, "a character follows the closing quote", at: position)
        } else {
          try self.closeValue(at: position)
          mode = byte == Self.comma ? .valueStart : .carriageReturn
          if byte == Self.lineFeed { return try self.completeRow(at: position + 1) }
        }
        position += 1
      case .unquoted:
        while position < end, !self.isSpecial(bytes[position]) { position += 1 }
        guard position < end else { break }
        let byte = bytes[position]
        if byte == Self.quote {
          throw self.error(.malformed, "a quote inside an unquoted value", at: position)
        }
        self.valueEnd = position
        try self.closeValue(at: position)
        mode = byte == Self.comma ? .valueStart : .carriageReturn
        position += 1
        if byte == Self.lineFeed { return try self.completeRow(at: position) }
      case .carriageReturn:
        guard bytes[position] == Self.lineFeed else {
          throw self.error(.malformed, "a carriage return without a line feed", at: position)
        }
        return try self.completeRow(at: position + 1)
      }
    }
    self.position = position
    self.mode = mode
    if self.buffer.count > end { throw self.tooLong() }
    return self.isFinished ? try self.endOfText() : .needsBytes
  }

  private func isSeparator(_ byte: UInt8) -> Bool {
    byte == Self.comma || byte == Self.lineFeed || byte == Self.carriageReturn
  }

  private func isSpecial(_ byte: UInt8) -> Bool {
    // Most bytes are greater than all four.
    byte <= Self.comma && (self.isSeparator(byte) || byte == Self.quote)
  }

  /// Returns false if more bytes are needed to decide.
  private mutating func skipByteOrderMark() -> Bool {
    let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
    let count = min(mark.count, self.buffer.count)
    let isMark = (0..<count).allSatisfy { self.buffer.start[$0] == mark[$0] }
    if isMark, count < mark.count, !self.isFinished { return false }
    if isMark, count == mark.count {
      self.rowStart = count
      self.position = count
    }
    self.mode = .valueStart
    return true
  }

  /// The position of the first quote, or `end` if there is none.
  private static func firstQuote(
    in bytes: UnsafeMutablePointer<UInt8>, _ start: Int, _ end: Int
  ) -> Int {
    guard let found = memchr(bytes + start, Int32(Self.quote), end - start) else { return end }
    return UnsafeMutableRawPointer(found) - UnsafeMutableRawPointer(bytes)
  }

  mutating func closeValue(at position: Int) throws(CSVError) {
    if self.extents.count == self.columnCount ?? self.limits.fields {
      throw self.columnCount == nil
        ? self.error(
          .limitExceeded, "the header has more than \(self.limits.fields) columns", at: position)
        : self.error(
          .fieldCount, "more values than the header's \(self.extents.count)", at: position)
    }
    self.extents.append(
      CSVRow.Extent(
        start: self.valueStart - self.rowStart, end: self.valueEnd - self.rowStart))
  }

  mutating func completeRow(at end: Int, hasEnd: Bool = true) throws(CSVError) -> Step {
    if let columnCount = self.columnCount, self.extents.count < columnCount {
      throw self.error(
        .fieldCount, "\(self.extents.count) values instead of the header's \(columnCount)",
        at: end)
    }
    self.position = end
    self.mode = .valueStart
    self.hasRow = true
    self.rowHasEnd = hasEnd
    self.rowCount += 1
    if self.columnCount != nil { return .row }
    self.columnCount = self.extents.count
    return .header
  }
}
