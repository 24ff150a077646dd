internal import Bytes

/// One column of the row group that is being written: its pages, compressed, and what the last page
/// will have.
///
/// A column costs nothing in rows in which it has no value: their levels are written as one run when
/// the next value comes.
final class ColumnChunkWriter {
  let column: ParquetColumn
  let physical: PhysicalType
  /// Unscaled numbers are nearer to 0.
  let decimalLimit: UInt128
  /// The uncompressed size at which a page ends.
  private let pageByteCount: Int
  /// The pages so far, without the dictionary's.
  private var pages = ByteBuffer(capacity: 64)
  /// That of the dictionary, made at the end.
  private var dictionaryPage = ByteBuffer(capacity: 64)
  @exclusivity(unchecked) private var dictionary: ValueDictionary
  @exclusivity(unchecked) private var statistics: ColumnStatistics
  @exclusivity(unchecked) private var usesDictionary: Bool

  // The page that is being filled.
  @exclusivity(unchecked) private var definition: HybridEncoder
  @exclusivity(unchecked) private var repetition = HybridEncoder(bitWidth: 1)
  @exclusivity(unchecked) private var levelCount = 0
  /// Values as in a plain page.
  @exclusivity(unchecked) private var values = ByteBuffer(capacity: 64)
  /// Values by their numbers in the dictionary.
  @exclusivity(unchecked) private var indices: [UInt32] = []
  /// The size of the dictionary when the page began.
  @exclusivity(unchecked) private var dictionaryStart = 0
  @exclusivity(unchecked) private var bits = 0

  // The chunk.
  /// Rows that have their levels.
  @exclusivity(unchecked) private var rowCount = 0
  @exclusivity(unchecked) private var nullCount = 0
  private var pageCounts: (dictionary: Int32, plain: Int32) = (0, 0)
  /// Values, nulls and empty lists in pages.
  private var chunkLevelCount = 0
  private var uncompressedByteCount = 0
  /// The list of the last row has no element yet, so its level is missing.
  private var hasOpenList = false
  private var listByteCount = 0
  private let builder: PageBuilder

  init(_ column: ParquetColumn, pageByteCount: Int, builder: PageBuilder) {
    self.column = column
    self.builder = builder
    self.physical = column.type.physical
    self.decimalLimit = column.type.decimalLimit
    self.pageByteCount = pageByteCount
    self.dictionary = ValueDictionary(self.physical)
    self.statistics = ColumnStatistics(column.type)
    self.usesDictionary = self.physical != .boolean
    self.definition = HybridEncoder(bitWidth: column.type.isList ? 2 : 1)
  }

  // MARK: Values

  func append(boolean value: Bool, row: Int) {
    if self.bits & 7 == 0 { self.values.append(UInt8(0)) }
    if value { self.values.base[self.bits >> 3] |= 1 << UInt8(self.bits & 7) }
    self.bits += 1
    self.statistics.note(value ? 1 : Int64(0))
    self.noteValue(row)
  }

  func append(integer value: Int64, row: Int) {
    let word = UInt64(bitPattern: value)
    let isWide = self.physical == .int64
    if self.index(isWide ? word : word & 0xFFFF_FFFF) { self.statistics.note(value) }
    if !self.usesDictionary {
      if isWide {
        self.values.append(littleEndian: word)
      } else {
        self.values.append(littleEndian: UInt32(truncatingIfNeeded: word))
      }
    }
    self.noteValue(row)
  }

  func append(number value: Double, row: Int) {
    let isWide = self.physical == .double
    let word = isWide ? value.bitPattern : UInt64(Float(value).bitPattern)
    if self.index(word) { self.statistics.note(value) }
    if !self.usesDictionary {
      if isWide {
        self.values.append(littleEndian: word)
      } else {
        self.values.append(littleEndian: UInt32(word))
      }
    }
    self.noteValue(row)
  }

  /// - Parameter value: in its stored form.
  func append(bytes value: UnsafeRawBufferPointer, row: Int) {
    self.store(value)
    self.noteValue(row)
  }

  /// Begins a list, to which `append(element:)` adds.
  func beginList(row: Int) {
    self.closeList()
    if self.isFull { self.endPage() }
    self.padNulls(to: row)
    self.rowCount = row + 1
    self.hasOpenList = true
    self.listByteCount = 0
  }

  /// - Returns: false if the list would be longer than a reader takes.
  func append(element value: UnsafeRawBufferPointer) -> Bool {
    self.listByteCount += value.count + 4
    guard self.listByteCount <= ParquetWriter.maxValueByteCount else { return false }
    // Before its level, because a dictionary that is full ends the page. Only between rows, though.
    self.store(value, isInList: true)
    self.repetition.append(self.hasOpenList ? 0 : 1)
    self.definition.append(2)
    self.levelCount += 1
    self.hasOpenList = false
    return true
  }

  private func closeList() {
    guard self.hasOpenList else { return }
    self.hasOpenList = false
    self.repetition.append(0)
    self.definition.append(1)
    self.levelCount += 1
  }

  private func store(_ value: UnsafeRawBufferPointer, isInList: Bool = false) {
    if self.usesDictionary {
      switch self.dictionary.index(of: value) {
      case .known(let index):
        self.indices.append(index)
        return
      case .new(let index):
        self.indices.append(index)
        self.statistics.note(value)
        return
      case .full:
        self.leaveDictionary(keepsPage: isInList)
      }
    }
    self.statistics.note(value)
    if self.physical == .bytes { self.values.append(littleEndian: UInt32(value.count)) }
    self.values.append(raw: value)
  }

  /// Numbers a value if there is a dictionary that takes it.
  ///
  /// - Returns: whether it is new to the statistics.
  private func index(_ word: UInt64) -> Bool {
    guard self.usesDictionary else { return true }
    switch self.dictionary.index(of: word) {
    case .known(let index):
      self.indices.append(index)
      return false
    case .new(let index):
      self.indices.append(index)
      return true
    case .full:
      self.leaveDictionary(keepsPage: false)
      return true
    }
  }

  @inline(__always)
  private func noteValue(_ row: Int) {
    self.padNulls(to: row)
    self.definition.append(1)
    self.levelCount += 1
    self.rowCount = row + 1
    if self.isFull { self.endPage() }
  }

  @inline(__always)
  private func padNulls(to row: Int) {
    let missing = row - self.rowCount
    guard missing > 0 else { return }
    if self.column.type.isList { self.repetition.append(0, count: missing) }
    self.definition.append(0, count: missing)
    self.levelCount += missing
    self.nullCount += missing
  }

  private var isFull: Bool {
    self.values.count + self.indices.count * 4 + self.dictionary.values.count
      - self.dictionaryStart >= self.pageByteCount
  }

  // MARK: Pages

  /// From here on values are stored as they are.
  ///
  /// - Parameter keepsPage: writes the values of the page as they are, too, because it cannot end here.
  private func leaveDictionary(keepsPage: Bool) {
    if keepsPage {
      self.writePlainValues()
    } else {
      self.endPage()
    }
    self.dropDictionary()
  }

  private func dropDictionary() {
    self.usesDictionary = false
    if self.pageCounts.dictionary == 0 { self.dictionary.removeAll() }
  }

  /// Replaces the indices of the page by their values.
  private func writePlainValues() {
    for index in self.indices {
      let value = self.dictionary.value(Int(index))
      if self.physical == .bytes { self.values.append(littleEndian: UInt32(value.count)) }
      self.values.append(raw: value)
    }
    self.indices.removeAll(keepingCapacity: true)
  }

  /// Whether the first page shows that most values are different.
  private var isDictionaryUseless: Bool {
    self.pageCounts == (0, 0)
      && (self.indices.isEmpty || self.dictionary.count > self.indices.count / 2)
  }

  private func endPage() {
    guard self.levelCount > 0 else { return }
    if self.usesDictionary, self.isDictionaryUseless {
      self.writePlainValues()
      self.dropDictionary()
    }
    if self.column.type.isList {
      self.repetition.finish()
      self.builder.append(levels: self.repetition.output)
      self.repetition.removeAll()
    }
    self.definition.finish()
    self.builder.append(levels: self.definition.output)
    self.definition.removeAll()
    let encoding: PageBuilder.Encoding
    if self.usesDictionary {
      encoding = .dictionary
      self.pageCounts.dictionary += 1
      self.appendIndices()
    } else {
      encoding = .plain
      self.pageCounts.plain += 1
      self.builder.body.append(self.values.bytes)
    }
    let heldBefore = self.pages.count
    self.uncompressedByteCount += self.builder.finish(
      .data(levelCount: self.levelCount, encoding), into: &self.pages)
    self.builder.heldByteCount +=
      self.pages.count - heldBefore + self.dictionary.values.count - self.dictionaryStart
    self.values.removeAll()
    self.bits = 0
    self.chunkLevelCount += self.levelCount
    self.levelCount = 0
    self.dictionaryStart = self.dictionary.values.count
  }

  private func appendIndices() {
    let greatest = UInt32(max(self.dictionary.count - 1, 1))
    let bitWidth = 32 - greatest.leadingZeroBitCount
    self.builder.body.append(UInt8(bitWidth))
    var encoder = HybridEncoder(bitWidth: bitWidth)
    for index in self.indices { encoder.append(index) }
    encoder.finish()
    self.builder.body.append(encoder.output.bytes)
    self.indices.removeAll(keepingCapacity: true)
  }

  // MARK: The chunk

  /// Passes the chunk to `write` and its description to `footer`, as an element of the row group.
  ///
  /// - Parameters:
  ///   - rowCount: of the row group.
  ///   - offset: where the chunk begins in the file.
  /// - Returns: the bytes of the chunk in the file, and without compression.
  func finish<Failure>(
    rowCount: Int, at offset: Int, describingIn footer: inout ThriftWriter,
    write: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) -> (byteCount: Int, uncompressedByteCount: Int) {
    self.closeList()
    self.padNulls(to: rowCount)
    self.endPage()
    if self.pageCounts.dictionary > 0 {
      self.builder.body.append(self.dictionary.values.bytes)
      self.uncompressedByteCount += self.builder.finish(
        .dictionary(valueCount: self.dictionary.count), into: &self.dictionaryPage)
    }
    self.describe(in: &footer, at: offset)
    if self.dictionaryPage.count > 0 { try write(self.dictionaryPage.raw) }
    try write(self.pages.raw)
    let sizes = (self.dictionaryPage.count + self.pages.count, self.uncompressedByteCount)
    self.begin()
    return sizes
  }

  /// Begins the next chunk with no more memory than the first.
  private func begin() {
    self.pages = ByteBuffer(capacity: 64)
    self.dictionaryPage = ByteBuffer(capacity: 64)
    self.dictionary.removeAll()
    self.statistics.removeAll()
    self.usesDictionary = self.physical != .boolean
    self.dictionaryStart = 0
    (self.rowCount, self.nullCount) = (0, 0)
    self.pageCounts = (0, 0)
    self.uncompressedByteCount = 0
    self.chunkLevelCount = 0
  }

  private func describe(in footer: inout ThriftWriter, at offset: Int) {
    let dictionary = self.pageCounts.dictionary
    footer.structure { chunk in
      chunk.integer(2, Int64(0))
      chunk.structure(3) { metadata in
        metadata.integer(1, self.physical.number)
        var encodings: [PageBuilder.Encoding] = [.plain, .hybrid]
        if dictionary > 0 { encodings.append(.dictionary) }
        metadata.list(2, .int32, count: encodings.count)
        for encoding in encodings { metadata.integer(encoding.rawValue) }
        let path = self.column.pathInSchema
        metadata.list(3, .binary, count: path.count)
        for name in path { metadata.text(name) }
        metadata.integer(4, FileMetadata.zstd)
        metadata.integer(5, Int64(self.chunkLevelCount))
        metadata.integer(6, Int64(self.uncompressedByteCount))
        metadata.integer(7, Int64(self.dictionaryPage.count + self.pages.count))
        metadata.integer(9, Int64(offset + self.dictionaryPage.count))
        if dictionary > 0 { metadata.integer(11, Int64(offset)) }
        if !self.column.type.isList { self.describeStatistics(in: &metadata) }
        self.describePages(in: &metadata)
      }
    }
  }

  private func describeStatistics(in metadata: inout ThriftWriter) {
    let bounds = self.statistics.bounds
    metadata.structure(12) { statistics in
      statistics.integer(3, Int64(self.nullCount))
      guard let bounds else { return }
      if let greatest = bounds.greatest { statistics.bytes(5, greatest) }
      statistics.bytes(6, bounds.least)
      if bounds.greatest != nil { statistics.boolean(7, bounds.isGreatestExact) }
      statistics.boolean(8, bounds.isLeastExact)
    }
  }

  /// The number of pages by type and encoding, by which a reader knows that all values are in the
  /// dictionary.
  private func describePages(in metadata: inout ThriftWriter) {
    let (dictionary, plain) = self.pageCounts
    var counts: [(kind: Int32, PageBuilder.Encoding, count: Int32)] = []
    if dictionary > 0 { counts += [(2, .plain, 1), (0, .dictionary, dictionary)] }
    if plain > 0 { counts.append((0, .plain, plain)) }
    metadata.list(13, .structure, count: counts.count)
    for (kind, encoding, count) in counts {
      metadata.structure { pages in
        pages.integer(1, kind)
        pages.integer(2, encoding.rawValue)
        pages.integer(3, count)
      }
    }
  }
}
