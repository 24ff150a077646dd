internal import Bytes

/// Reads one column, value by value, and knows the row of the next one.
final class ColumnCursor {
  let column: ParquetColumn
  let physical: PhysicalType
  private let isList: Bool
  private let isText: Bool
  /// Unscaled numbers are nearer to 0; 0 for other types.
  private let decimalLimit: UInt128
  private let pages: PageReader

  // The chunk.
  private var group = 0
  private var offset = 0
  private var end = 0
  private var rowCount = 0
  private var chunkLevelCount = 0
  private var isFirstPage = true

  // The page.
  @exclusivity(unchecked) private var page = ByteBuffer(capacity: 64)
  private var pageOffset = 0
  @exclusivity(unchecked) private var levelCount = 0
  @exclusivity(unchecked) private var definition = HybridDecoder(0..<0, bitWidth: 1, greatest: 0)
  @exclusivity(unchecked) private var repetition = HybridDecoder(0..<0, bitWidth: 1, greatest: 0)
  @exclusivity(unchecked) private var usesDictionary = false
  @exclusivity(unchecked) private var indices = HybridDecoder(0..<0, bitWidth: 1, greatest: 0)
  @exclusivity(unchecked) private var valueOffset = 0
  @exclusivity(unchecked) private var bits = 0

  @exclusivity(unchecked) private var dictionary = ByteBuffer(capacity: 64)
  private var dictionaryCount = 0
  /// The values of variable length in the dictionary.
  @exclusivity(unchecked) private var dictionaryRanges: [Range<Int>] = []

  // Rows.
  @exclusivity(unchecked) private var row = 0
  /// Rows from `row` on that have a value each.
  @exclusivity(unchecked) private var presentCount = 0
  /// The first level of the next row of lists; nil if it is on the next page.
  @exclusivity(unchecked) private var listLevel: UInt32?
  /// The row of the value that `take` takes; greater than all rows if there is none.
  @exclusivity(unchecked) private(set) var nextRow = Int.max

  // What `take` has taken.
  @exclusivity(unchecked) private(set) var integer: Int64 = 0
  @exclusivity(unchecked) private(set) var number = 0.0
  @exclusivity(unchecked) private var range = 0..<0
  @exclusivity(unchecked) private var elements: [Range<Int>] = []

  init(_ column: ParquetColumn, _ pages: PageReader) {
    self.column = column
    self.physical = column.type.physical
    self.isList = column.type.isList
    self.isText = column.type.isText
    self.decimalLimit = column.type.decimalLimit
    self.pages = pages
  }

  private var place: String {
    "column \(self.column.name), row group \(self.group), page at byte \(self.pageOffset)"
  }

  private func damaged(_ reason: String) -> ParquetError {
    ParquetError(.damaged, self.place, reason)
  }

  // MARK: Moving

  func begin(
    _ chunk: FileMetadata.Chunk, group: Int, rowCount: Int
  ) throws(ParquetError) {
    self.group = group
    self.offset = chunk.start
    self.end = chunk.start + chunk.byteCount
    self.pageOffset = chunk.start
    self.rowCount = rowCount
    self.chunkLevelCount = chunk.levelCount
    self.isFirstPage = true
    self.dictionaryCount = 0
    self.levelCount = 0
    self.row = 0
    self.presentCount = 0
    self.listLevel = nil
    try self.find()
  }

  /// Passes the value that was taken.
  func advance() throws(ParquetError) {
    self.row += 1
    if !self.isList { self.presentCount -= 1 }
    try self.find()
  }

  private func find() throws(ParquetError) {
    while try !self.findInPage() {
      if try self.loadPage() { continue }
      guard self.row == self.rowCount, self.chunkLevelCount == 0 else {
        throw self.damaged("it is the last, but \(self.rowCount - self.row) rows are missing")
      }
      self.nextRow = Int.max
      return
    }
    self.nextRow = self.row
  }

  /// - Returns: false at the end of the page.
  @inline(__always)
  private func findInPage() throws(ParquetError) -> Bool {
    do throws(HybridDecoder.Fault) {
      let isFound = self.isList ? try self.findList() : try self.findValue()
      guard isFound ? self.row < self.rowCount : self.row <= self.rowCount else {
        throw HybridDecoder.Fault()
      }
      return isFound
    } catch {
      throw self.damaged("its levels are not those of its rows")
    }
  }

  /// - Returns: false at the end of the page.
  @inline(__always)
  private func findValue() throws(HybridDecoder.Fault) -> Bool {
    while self.presentCount == 0 {
      if self.levelCount == 0 { return false }
      let run = try self.definition.nextRun(in: self.page.raw, limit: self.levelCount)
      self.levelCount -= run.count
      if run.value == 0 {
        self.row += run.count
      } else {
        self.presentCount = run.count
      }
    }
    return true
  }

  private func findList() throws(HybridDecoder.Fault) -> Bool {
    while true {
      if self.listLevel == nil {
        if self.levelCount == 0 { return false }
        let (repetition, definition) = try self.nextLevels()
        guard repetition == 0 else { throw HybridDecoder.Fault() }
        self.listLevel = definition
      }
      if self.listLevel != 0 { return true }
      self.listLevel = nil
      self.row += 1
    }
  }

  private func nextLevels() throws(HybridDecoder.Fault) -> (UInt32, UInt32) {
    self.levelCount -= 1
    return (
      try self.repetition.next(in: self.page.raw), try self.definition.next(in: self.page.raw)
    )
  }

  // MARK: Pages

  /// - Returns: false if there is none.
  private func loadPage() throws(ParquetError) -> Bool {
    try self.checkPageEnd()
    while self.offset < self.end {
      self.pageOffset = self.offset
      let (header, next) = try self.pages.read(
        at: self.offset, end: self.end, into: &self.page, place: self.place)
      self.offset = next
      switch header.kind {
      case 0:
        self.isFirstPage = false
        try self.beginPage(header)
        return true
      case 2 where self.isFirstPage && self.physical != .boolean:
        self.isFirstPage = false
        try self.readDictionary(header)
      default: throw ParquetError(.unsupported, self.place, "a page of type \(header.kind)")
      }
    }
    return false
  }

  private func checkPageEnd() throws(ParquetError) {
    guard !self.isFirstPage, !self.usesDictionary else { return }
    let end = self.physical == .boolean ? self.valueOffset + (self.bits + 7) / 8 : self.valueOffset
    guard end == self.page.count else { throw self.damaged("it has bytes after its last value") }
  }

  private func beginPage(_ header: PageReader.Header) throws(ParquetError) {
    guard header.valueCount > 0, header.valueCount <= self.chunkLevelCount else {
      throw self.damaged("it has \(header.valueCount) values, but \(self.chunkLevelCount) are left")
    }
    self.levelCount = header.valueCount
    self.chunkLevelCount -= header.valueCount
    self.bits = 0
    var offset = 0
    if self.isList {
      self.repetition = try self.levels(at: &offset, bitWidth: 1, greatest: 1)
    }
    let greatest = self.column.type.maxDefinition
    self.definition = try self.levels(
      at: &offset, bitWidth: Int(greatest), greatest: greatest)
    switch header.encoding {
    case Int64(PageBuilder.Encoding.plain.rawValue):
      self.usesDictionary = false
      self.valueOffset = offset
    case Int64(PageBuilder.Encoding.dictionary.rawValue):
      guard self.dictionaryCount > 0, offset < self.page.count else {
        throw self.damaged("it refers to a dictionary that its column does not have")
      }
      let bitWidth = Int(self.page.raw[offset])
      guard (1...16).contains(bitWidth) else {
        throw self.damaged("its indices have \(bitWidth) bits")
      }
      self.usesDictionary = true
      self.indices = HybridDecoder(
        offset + 1..<self.page.count, bitWidth: bitWidth,
        greatest: UInt32(self.dictionaryCount - 1))
    default:
      throw ParquetError(.unsupported, self.place, "values in encoding \(header.encoding)")
    }
  }

  private func levels(
    at offset: inout Int, bitWidth: Int, greatest: UInt32
  ) throws(ParquetError) -> HybridDecoder {
    let range = try self.range(at: &offset, in: self.page)
    return HybridDecoder(range, bitWidth: bitWidth, greatest: greatest)
  }

  /// The bytes that follow their length.
  private func range(
    at offset: inout Int, in buffer: borrowing ByteBuffer
  ) throws(ParquetError) -> Range<Int> {
    let bytes = buffer.raw
    guard bytes.count - offset >= 4 else { throw self.damaged("it ends inside a length") }
    let count = Int(
      UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
    offset += 4
    guard count <= bytes.count - offset else { throw self.damaged("it ends inside a value") }
    defer { offset += count }
    return offset..<offset + count
  }

  private func readDictionary(_ header: PageReader.Header) throws(ParquetError) {
    guard header.encoding == Int64(PageBuilder.Encoding.plain.rawValue) else {
      throw ParquetError(.unsupported, self.place, "a dictionary in encoding \(header.encoding)")
    }
    guard header.valueCount <= 1 << 16 else {
      throw self.damaged("a dictionary of \(header.valueCount) values")
    }
    swap(&self.dictionary, &self.page)
    self.page.removeAll()
    self.dictionaryCount = header.valueCount
    self.dictionaryRanges.removeAll(keepingCapacity: true)
    var offset = 0
    if self.physical == .bytes {
      for _ in 0..<header.valueCount {
        let range = try self.range(at: &offset, in: self.dictionary)
        try self.checkText(range, in: self.dictionary)
        self.dictionaryRanges.append(range)
      }
    } else {
      offset = header.valueCount * self.physical.byteCount
    }
    guard offset == self.dictionary.count else {
      throw self.damaged("a dictionary of another length")
    }
  }

  private func checkText(
    _ range: Range<Int>, in buffer: borrowing ByteBuffer
  ) throws(ParquetError) {
    guard self.isText else { return }
    guard isUTF8(UnsafeRawBufferPointer(rebasing: buffer.raw[range])) else {
      throw self.damaged("a text is not UTF-8")
    }
  }

  // MARK: Values

  /// The bytes that were taken; valid until `advance`.
  var bytes: UnsafeRawBufferPointer { self.bytes(self.range) }
  var elementCount: Int { self.elements.count }
  /// Valid until `advance`.
  func element(_ index: Int) -> UnsafeRawBufferPointer { self.bytes(self.elements[index]) }

  private func bytes(_ range: Range<Int>) -> UnsafeRawBufferPointer {
    let buffer = self.usesDictionary ? self.dictionary.raw : self.page.raw
    return UnsafeRawBufferPointer(rebasing: buffer[range])
  }

  /// The unscaled number that was taken.
  var decimal: Int128 {
    guard case .fixed = self.physical else { return Int128(self.integer) }
    return bigEndian(self.bytes)
  }

  /// Reads the value of `nextRow`.
  func take() throws(ParquetError) {
    if self.isList { return try self.takeList() }
    switch self.physical {
    case .boolean: try self.takeBit()
    case .int32:
      self.integer = Int64(
        Int32(bitPattern: UInt32(truncatingIfNeeded: try self.takeWord(byteCount: 4))))
    case .int64: self.integer = Int64(bitPattern: try self.takeWord(byteCount: 8))
    case .float:
      self.number = Double(
        Float(bitPattern: UInt32(truncatingIfNeeded: try self.takeWord(byteCount: 4))))
    case .double: self.number = Double(bitPattern: try self.takeWord(byteCount: 8))
    case .bytes, .fixed: self.range = try self.takeRange()
    }
    if self.decimalLimit > 0 {
      guard self.decimal.magnitude < self.decimalLimit else {
        throw self.damaged("a number has more digits than its type")
      }
    }
  }

  private func takeList() throws(ParquetError) {
    self.elements.removeAll(keepingCapacity: true)
    let isEmpty = self.listLevel == 1
    self.listLevel = nil
    if isEmpty { return }
    self.elements.append(try self.takeRange())
    // A row does not span pages.
    while self.levelCount > 0 {
      let levels: (repetition: UInt32, definition: UInt32)
      do throws(HybridDecoder.Fault) {
        levels = try self.nextLevels()
      } catch {
        throw self.damaged("its levels are not those of its rows")
      }
      guard levels.repetition > 0 else {
        self.listLevel = levels.definition
        return
      }
      guard levels.definition == 2 else { throw self.damaged("an element is null") }
      self.elements.append(try self.takeRange())
    }
  }

  private func takeBit() throws(ParquetError) {
    let byte = self.valueOffset + self.bits >> 3
    guard byte < self.page.count else { throw self.damaged("it has fewer values than levels") }
    self.integer = Int64(self.page.raw[byte] >> UInt8(self.bits & 7) & 1)
    self.bits += 1
  }

  private func takeIndex() throws(ParquetError) -> Int {
    do throws(HybridDecoder.Fault) {
      return Int(try self.indices.next(in: self.page.raw))
    } catch {
      throw self.damaged("its indices are not those of its dictionary")
    }
  }

  private func takeWord(byteCount: Int) throws(ParquetError) -> UInt64 {
    let bytes: UnsafeRawBufferPointer
    let place: Int
    if self.usesDictionary {
      // `readDictionary` has compared its length with the number of its values.
      place = try self.takeIndex() * byteCount
      bytes = self.dictionary.raw
    } else {
      place = try self.takePlain(byteCount)
      bytes = self.page.raw
    }
    return byteCount == 8
      ? UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self))
      : UInt64(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: place, as: UInt32.self)))
  }

  /// The place of the next value of so many bytes.
  private func takePlain(_ byteCount: Int) throws(ParquetError) -> Int {
    guard byteCount <= self.page.count - self.valueOffset else {
      throw self.damaged("it has fewer values than levels")
    }
    defer { self.valueOffset += byteCount }
    return self.valueOffset
  }

  private func takeRange() throws(ParquetError) -> Range<Int> {
    let byteCount = self.physical.byteCount
    if self.usesDictionary {
      let index = try self.takeIndex()
      return byteCount == 0
        ? self.dictionaryRanges[index] : index * byteCount..<(index + 1) * byteCount
    }
    guard byteCount == 0 else {
      let start = try self.takePlain(byteCount)
      return start..<start + byteCount
    }
    let range = try self.range(at: &self.valueOffset, in: self.page)
    try self.checkText(range, in: self.page)
    return range
  }
}

/// Two's complement of at most 16 bytes.
private func bigEndian(_ bytes: UnsafeRawBufferPointer) -> Int128 {
  var value: Int128 = bytes.first.map { $0 >= 0x80 ? -1 : 0 } ?? 0
  for byte in bytes { value = value << 8 | Int128(byte) }
  return value
}
