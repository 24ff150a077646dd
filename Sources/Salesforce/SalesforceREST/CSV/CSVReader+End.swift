extension CSVReader {
  /// Handles the end of the text, depending on the state of the current row.
  mutating func endOfText() throws(CSVError) -> Step {
    let isQuoted = self.mode == .closingQuote
    switch self.mode {
    case .byteOrderMark, .valueStart:
      if self.position == self.rowStart { return .end }
      // After a comma.
      self.valueStart = self.position
      self.valueEnd = self.position
    case .unquoted: self.valueEnd = self.position
    case .closingQuote: break
    case .quoted:
      throw self.error(.truncated, "the text ends inside quotes", at: self.position)
    case .carriageReturn:
      throw self.error(.malformed, "a carriage return without a line feed", at: self.position)
    }
    try self.closeValue(at: self.position)
    return try self.completeRow(at: self.position, hasEnd: isQuoted)
  }

  func tooLong() -> CSVError {
    self.error(
      .limitExceeded, "the row has more than \(self.limits.rowBytes) bytes",
      at: self.rowStart + self.limits.rowBytes)
  }

  /// - Parameter position: the position in the buffer.
  func error(_ code: CSVError.Code, _ message: String, at position: Int) -> CSVError {
    CSVError(
      code: code, message: message, rowNumber: self.rowCount + 1,
      byteOffset: self.buffer.discarded + position)
  }
}
