internal import JSON
internal import Pipeline

/// What an encoder does for each row, compiled from a layout: flat tables over one pool of text
/// with escaped and quoted keys, names and symbols.
///
/// Columns have the order of the line, slots that of the schema, so columns are divided into scans:
/// runs with ascending slots. A scan finds what is present by reading eight presence bytes at a
/// time, with a mask that keeps only its own columns.
struct NDJSONPlan: ~Copyable {
  /// The content of the lines.
  enum Lines {
    /// Events whose places follow from the file's name and the order of lines.
    case plain
    /// Events with their places.
    case placed
    /// Records that were read.
    case reads
  }

  /// A piece of the pool.
  struct Text {
    var offset: UInt32
    var count: UInt32

    /// Copies 16 bytes at a time, beyond the end of the text.
    ///
    /// - Parameters:
    ///   - pool: has the text, and the compiler's padding at its end.
    ///   - target: has room for as much padding.
    @inline(__always)
    func copy(from pool: UnsafeMutableBufferPointer<UInt8>, to target: UnsafeMutableRawPointer) {
      // The pool has at least its padding, so it has an address.
      let source = UnsafeRawPointer(pool.baseAddress!) + Int(self.offset)
      var offset = 0
      repeat {
        target.storeBytes(
          of: source.loadUnaligned(fromByteOffset: offset, as: SIMD16<UInt8>.self),
          toByteOffset: offset, as: SIMD16<UInt8>.self)
        offset &+= 16
      } while offset < Int(self.count)
    }
  }

  /// The name of a slot in `_changed_fields` and similar lists.
  struct ListName {
    var text: Text
    /// Not 0 for slots of a record that is written as an object: all of them share its key and one
    /// number.
    var shared: UInt32
  }

  /// A part of a table.
  struct Rows {
    var first: Int
    var end: Int
    var indices: Range<Int> { self.first..<self.end }
  }

  /// How a cell becomes text.
  enum Operation: UInt8 {
    case boolean, integer, quotedInteger, float, double, string, enumeration, bytes, decimal
    case dateOfDays, dateOfMilliseconds
    case timeMilliseconds, timeMicroseconds, timeNanoseconds
    case timestampMilliseconds, timestampMicroseconds, timestampNanoseconds
    case localMilliseconds, localMicroseconds, localNanoseconds
    case duration, jsonText, fieldSet, record

    /// Whether the text of a value is between quotes that the encoder adds.
    var isQuoted: Bool {
      switch self {
      // Symbols of an enumeration have quotes of their own.
      case .boolean, .integer, .float, .double, .enumeration, .duration, .jsonText, .fieldSet,
        .record:
        false
      default: true
      }
    }
  }

  struct Entry {
    /// `,"Amount":`, and the opening quote of a value between quotes.
    var key: Text
    /// `,"Amount":`
    var keyOfNull: Text
    /// For `_nonfinite`: `,"Amount"`, or `,"BillingAddress.Latitude"` for the child of a record that
    /// is not flattened.
    var name: Text
    var operation: Operation
    /// Scale of a decimal, first index into `symbols`, index into `records`.
    var argument: Int
    /// Count of symbols.
    var count = 0
  }

  /// Columns whose slots ascend.
  struct Scan {
    /// In units of 8 slots.
    var firstWord: Int
    /// Index of the first word's mask; one mask per word.
    var masks: Rows
    /// Index of the entry of the first slot of the first word; one entry per slot.
    var entries: Int
  }

  enum Step {
    /// Constant columns.
    case text(Text)
    case scan(Scan)
    /// A list of field names that every line has, empty if the row has none.
    case fieldSet(slot: Int, key: Text)
    /// The names of the fields that were read, if some columns were not.
    case fieldsRead(key: Text)
    /// Additional members of records that were read and of events with their places: `ReadKeys`.
    case read
  }

  /// Keys of records that were read. Events with their places use the last two.
  struct ReadKeys {
    var stamp: Text?
    var readAt: Text?
    var epoch: Text?
    var ordinal: Text?
  }

  struct Record {
    var steps: Rows
    /// The scalar branch of a union: its slot and how to write it; -1 without one.
    var scalarSlot: Int
    var scalar: Entry
  }

  /// Names in the order of `_changed_fields`, divided where slots do not ascend.
  struct NameScan {
    /// In units of 64 slots.
    var firstWord: Int
    /// Index of the first word's mask; one mask per word.
    var masks: Rows
  }

  let text: UnsafeMutableBufferPointer<UInt8>
  let entries: UnsafeMutableBufferPointer<Entry>
  let masks: UnsafeMutableBufferPointer<UInt64>
  let steps: UnsafeMutableBufferPointer<Step>
  let symbols: UnsafeMutableBufferPointer<Text>
  let records: UnsafeMutableBufferPointer<Record>
  let nameScans: UnsafeMutableBufferPointer<NameScan>
  let nameMasks: UnsafeMutableBufferPointer<UInt64>
  /// One per slot; a count of 0 for slots that are in no column.
  let names: UnsafeMutableBufferPointer<ListName>
  /// Room for all names of a list, with brackets and padding.
  let nameListByteCount: Int
  /// Keys that no column uses.
  let readKeys: ReadKeys
  /// By 8 slots, a bit in each byte: slots that are all present if a record was read completely.
  let readMasks: UnsafeMutableBufferPointer<UInt64>
  /// The highest number of `ListName.shared`.
  let sharedNameCount: Int
  /// The steps of the line itself; those of records follow or precede them.
  let line: Rows

  init(layout: RecordLayout, options: NDJSONFormat, lines: Lines) {
    var compiler = NDJSONPlanCompiler(layout: layout, options: options, lines: lines)
    self.line = compiler.compile(layout.columns, parent: [])
    compiler.compileNameScans()
    self.readKeys = compiler.readKeys
    self.readMasks = table(compiler.readMasks)
    self.text = compiler.finishText()
    self.entries = table(compiler.entries)
    self.masks = table(compiler.masks)
    self.steps = table(compiler.steps)
    self.symbols = table(compiler.symbols)
    self.records = table(compiler.records)
    self.nameScans = table(compiler.nameScans)
    self.nameMasks = table(compiler.nameMasks)
    self.names = table(compiler.names)
    self.nameListByteCount =
      compiler.names.reduce(2) { $0 + Int($1.text.count) } + NDJSONPlanCompiler.padding
    self.sharedNameCount = Int(compiler.sharedNameCount)
  }

  deinit {
    self.text.deallocate()
    self.entries.deallocate()
    self.masks.deallocate()
    self.steps.deallocate()
    self.symbols.deallocate()
    self.records.deallocate()
    self.nameScans.deallocate()
    self.nameMasks.deallocate()
    self.names.deallocate()
    self.readMasks.deallocate()
  }
}

private func table<Element: BitwiseCopyable>(
  _ elements: [Element]
) -> UnsafeMutableBufferPointer<Element> {
  let table = UnsafeMutableBufferPointer<Element>.allocate(capacity: elements.count)
  _ = table.initialize(from: elements)
  return table
}
