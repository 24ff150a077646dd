package import Bytes
internal import JSON
package import Pipeline

/// Writes rows of one layout as NDJSON lines (LinesAndColumns.md#a-line).
///
/// `init` compiles everything that depends only on the layout, above all escaped names; writing a
/// row allocates only when the output grows. Used by one thread at a time.
///
/// - Absent cells leave no key; null cells are `null`.
/// - Records that were not flattened are objects of their present children; the scalar branch of a
///   union of a scalar and a record is written directly under the record's name.
/// - Lines of change events always have the lists of field names, even empty ones. They name keys
///   of this line, each once: slots outside the layout's columns are left out, and a part of a
///   record that was not flattened is named by the record's key.
/// - NaN and infinities are `null`, and `"_nonfinite":{"Amount":"NaN"}` ends the line. Inside a
///   value it names the place: `Location.Latitude`, `Scores[2]`, `Rates.EUR`.
package final class NDJSONEncoder: RowEncoder {
  package let layout: RecordLayout
  /// Additional members of records that were read; nil for events.
  @exclusivity(unchecked) var read: RowOrigin.Read?
  /// The place of the current event in the stream; written only by an encoder with `tellsPlaces`.
  @exclusivity(unchecked) private(set) var place: (epoch: Int, ordinal: Int64)?
  private let plan: NDJSONPlan
  /// Cells of the current row that JSON cannot express; empty between rows. Only this class
  /// accesses it, so the check for overlapping access, which took 4 % of a row's time, is omitted.
  @exclusivity(unchecked) private var nonfinite: [Nonfinite] = []
  /// The batch's nonfinite numbers; searched only if there are any.
  @exclusivity(unchecked) private var lostNumbers: [RecordBatch.NonfiniteNumber] = []
  /// The number of the current list of names, and for each record the last list that named its key.
  @exclusivity(unchecked) private var listNumber: UInt64 = 0
  @exclusivity(unchecked) private var namedIn: [UInt64]

  /// A cell, or a number inside the JSON text of one.
  private struct Nonfinite {
    var name: NDJSONPlan.Text
    var value: Float
    /// The cell with the text, and the number's offset in it; nil for the cell itself.
    var place: (cell: UInt64, offset: Int)?
  }

  /// - Parameters:
  ///   - isOfReads: the rows are records that were read.
  ///   - tellsPlaces: lines of events have `_epoch` and `_ordinal`, from `place`.
  package init(
    layout: RecordLayout, format: NDJSONFormat = NDJSONFormat(), isOfReads: Bool = false,
    tellsPlaces: Bool = false
  ) {
    self.layout = layout
    self.plan = NDJSONPlan(
      layout: layout, options: format, lines: isOfReads ? .reads : tellsPlaces ? .placed : .plain)
    self.namedIn = Array(repeating: 0, count: self.plan.sharedNameCount + 1)
  }

  package func append(
    _ rows: Range<Int>, of batch: RecordBatch, from origin: RowOrigin,
    to output: inout ByteBuffer, limit: Int
  ) -> Int {
    switch origin {
    case .event(let epoch, let ordinal): self.place = (epoch, ordinal)
    case .read(let read): self.read = read
    }
    var row = rows.lowerBound
    repeat {
      self.append(row: row, of: batch, to: &output)
      row += 1
    } while row < rows.upperBound && output.count < limit
    return row
  }

  /// Appends the line of a row, with its line feed.
  ///
  /// - Parameter batch: one whose layout is the encoder's.
  package func append(row: Int, of batch: RecordBatch, to output: inout ByteBuffer) {
    precondition(batch.layout === self.layout, "a batch of another layout")
    let row = batch.row(row)
    if !batch.nonfinite.isEmpty || !self.lostNumbers.isEmpty { self.lostNumbers = batch.nonfinite }
    self.appendObject(self.plan.line, row, to: &output)
    if !self.nonfinite.isEmpty { self.appendNonfinite(row, to: &output) }
    output.append(UInt8(ascii: "\n"))
  }

  /// Appends `{…}`. Each step starts with a comma; the brace overwrites the first one.
  private func appendObject(
    _ steps: NDJSONPlan.Rows, _ row: RecordBatch.Row, to output: inout ByteBuffer
  ) {
    let start = output.count
    for index in steps.indices {
      switch self.plan.steps[index] {
      case .text(let text): self.append(text, to: &output)
      case .scan(let scan): self.append(scan, row, to: &output)
      case .fieldSet(let slot, let key):
        self.append(key, to: &output)
        if let cell = row.value(slot) {
          self.appendNames(row.bytes(cell), to: &output)
        } else {
          output.append(utf8: "[]")
        }
      case .fieldsRead(let key):
        self.appendFieldsRead(key, self.plan.readMasks, row, to: &output)
      case .read: self.appendRead(self.plan.readKeys, to: &output)
      }
    }
    if output.count == start { output.append(UInt8(ascii: "{")) }
    output.base[start] = UInt8(ascii: "{")
    output.append(UInt8(ascii: "}"))
  }

  @inline(__always)
  private func append(_ scan: NDJSONPlan.Scan, _ row: RecordBatch.Row, to output: inout ByteBuffer)
  {
    var slots = scan.firstWord * 8
    // A scan has entries, so the table has an address.
    var entries = UnsafePointer(self.plan.entries.baseAddress!) + scan.entries
    let presence = UnsafeRawPointer(row.presence)
    for mask in scan.masks.indices {
      let word = presence.loadUnaligned(fromByteOffset: slots, as: UInt64.self)
      var present = UInt64(littleEndian: word) & self.plan.masks[mask]
      // One bit per cell that is not absent: bit 0 of its byte for null, bit 1 for a value.
      while present != 0 {
        let bit = present.trailingZeroBitCount
        present &= present &- 1
        let entry = entries + bit >> 3
        if bit & 1 != 0 {
          self.append(entry.pointee.key, to: &output)
          let cell = row.cells[slots &+ bit >> 3]
          if entry.pointee.operation == .string {
            // The most frequent, without a call in between.
            output.appendJSONStringRest(row.bytes(cell))
          } else {
            self.appendValue(entry, cell, row, to: &output)
          }
        } else {
          self.append(entry.pointee.keyOfNull, to: &output)
          output.append(utf8: "null")
        }
      }
      slots &+= 8
      entries += 8
    }
  }

  /// Appends what follows the key, which has the value's opening quote if there is one.
  private func appendValue(
    _ entry: UnsafePointer<NDJSONPlan.Entry>, _ cell: UInt64, _ row: RecordBatch.Row,
    to output: inout ByteBuffer
  ) {
    let number = Int64(bitPattern: cell)
    switch entry.pointee.operation {
    case .boolean: output.appendJSON(cell != 0)
    case .integer: output.append(number)
    case .quotedInteger: Self.quoteAfter(&output) { $0.append(number) }
    case .float:
      let value = Float(bitPattern: UInt32(truncatingIfNeeded: cell))
      if value.isFinite {
        output.append(value)
      } else {
        self.appendNonfinite(value, entry.pointee.name, to: &output)
      }
    case .double:
      let value = Double(bitPattern: cell)
      if value.isFinite {
        output.append(value)
      } else {
        self.appendNonfinite(Float(value), entry.pointee.name, to: &output)
      }
    case .string: output.appendJSONStringRest(row.bytes(cell))
    case .enumeration:
      precondition(cell < UInt64(entry.pointee.count), "symbol \(cell) of an enumeration")
      self.append(self.plan.symbols[entry.pointee.argument + Int(cell)], to: &output)
    case .bytes: Self.quoteAfter(&output) { $0.appendBase64(row.bytes(cell)) }
    case .decimal:
      Self.quoteAfter(&output) {
        $0.appendDecimal(unscaled: row.bytes(cell), scale: entry.pointee.argument)
      }
    case .dateOfDays:
      Self.quoteAfter(&output) { $0.appendDate(days: Int32(truncatingIfNeeded: number)) }
    case .dateOfMilliseconds: Self.quoteAfter(&output) { $0.appendDate(milliseconds: number) }
    case .timeMilliseconds: Self.quoteAfter(&output) { $0.appendTime(number, .milliseconds) }
    case .timeMicroseconds: Self.quoteAfter(&output) { $0.appendTime(number, .microseconds) }
    case .timeNanoseconds: Self.quoteAfter(&output) { $0.appendTime(number, .nanoseconds) }
    case .timestampMilliseconds:
      Self.quoteAfter(&output) { $0.appendTimestamp(number, .milliseconds) }
    case .timestampMicroseconds:
      Self.quoteAfter(&output) { $0.appendTimestamp(number, .microseconds) }
    case .timestampNanoseconds:
      Self.quoteAfter(&output) { $0.appendTimestamp(number, .nanoseconds) }
    case .localMilliseconds:
      Self.quoteAfter(&output) { $0.appendTimestamp(number, .milliseconds, isLocal: true) }
    case .localMicroseconds:
      Self.quoteAfter(&output) { $0.appendTimestamp(number, .microseconds, isLocal: true) }
    case .localNanoseconds:
      Self.quoteAfter(&output) { $0.appendTimestamp(number, .nanoseconds, isLocal: true) }
    case .duration: output.appendDuration(row.bytes(cell))
    case .jsonText:
      output.append(row.bytes(cell))
      if !self.lostNumbers.isEmpty { self.noteLost(cell, entry.pointee.name) }
    case .fieldSet: self.appendNames(row.bytes(cell), to: &output)
    case .record: self.appendRecord(entry.pointee.argument, row, to: &output)
    }
  }

  @inline(__always)
  static func quoted(_ output: inout ByteBuffer, _ append: (inout ByteBuffer) -> Void) {
    output.append(UInt8(ascii: "\""))
    append(&output)
    output.append(UInt8(ascii: "\""))
  }

  @inline(__always)
  private static func quoteAfter(
    _ output: inout ByteBuffer, _ append: (inout ByteBuffer) -> Void
  ) {
    append(&output)
    output.append(UInt8(ascii: "\""))
  }

  private func appendRecord(_ index: Int, _ row: RecordBatch.Row, to output: inout ByteBuffer) {
    // The caller's entry is for a record, so the table has an address.
    let record = UnsafePointer(self.plan.records.baseAddress!) + index
    let slot = record.pointee.scalarSlot
    if slot >= 0, let cell = row.value(slot) {
      // The key is that of the record.
      if record.pointee.scalar.operation.isQuoted { output.append(UInt8(ascii: "\"")) }
      withUnsafePointer(to: record.pointee.scalar) { self.appendValue($0, cell, row, to: &output) }
    } else {
      self.appendObject(record.pointee.steps, row, to: &output)
    }
  }

  /// Appends the names of the set bits as an array.
  func appendNames(
    _ bits: UnsafeBufferPointer<UInt8>, to output: inout ByteBuffer
  ) {
    self.listNumber &+= 1
    let start = UnsafeMutableRawPointer(output.reserve(self.plan.nameListByteCount))
    var out = start
    // Copied, so that the plan is not looked up for each name.
    let (names, masks, pool) = (self.plan.names, self.plan.nameMasks, self.plan.text)
    for scan in self.plan.nameScans {
      var word = scan.firstWord
      for mask in scan.masks.indices {
        var set = Self.word(word, of: bits) & masks[mask]
        while set != 0 {
          let name = names[word &* 64 &+ set.trailingZeroBitCount]
          set &= set &- 1
          if name.shared != 0 {
            guard self.namedIn[Int(name.shared)] != self.listNumber else { continue }
            self.namedIn[Int(name.shared)] = self.listNumber
          }
          name.text.copy(from: pool, to: out)
          out += Int(name.text.count)
        }
        word &+= 1
      }
    }
    // The bracket overwrites the first comma.
    if out == start { out += 1 }
    start.storeBytes(of: UInt8(ascii: "["), as: UInt8.self)
    out.storeBytes(of: UInt8(ascii: "]"), as: UInt8.self)
    output.commit(out - start + 1)
  }

  /// Bits of 64 slots; those beyond the end are not set.
  @inline(__always)
  private static func word(_ index: Int, of bits: UnsafeBufferPointer<UInt8>) -> UInt64 {
    let offset = index &* 8
    let raw = UnsafeRawBufferPointer(bits)
    if offset &+ 8 <= bits.count {
      return UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }
    if bits.count >= 8 {
      // The last eight bytes, without those that belong to the word before. A shift by 64 gives 0.
      let last = raw.loadUnaligned(fromByteOffset: bits.count &- 8, as: UInt64.self)
      return UInt64(littleEndian: last) >> UInt64((offset &+ 8 &- bits.count) &* 8)
    }
    var word: UInt64 = 0
    for byte in stride(from: bits.count - 1, through: offset, by: -1) {
      word = word << 8 | UInt64(bits[byte])
    }
    return word
  }

  // MARK: NaN and infinities

  @inline(never)
  private func appendNonfinite(
    _ value: Float, _ name: NDJSONPlan.Text, to output: inout ByteBuffer
  ) {
    output.append(utf8: "null")
    self.nonfinite.append(Nonfinite(name: name, value: value))
  }

  /// Adds the numbers that the JSON text of a cell cannot express.
  @inline(never)
  private func noteLost(_ cell: UInt64, _ name: NDJSONPlan.Text) {
    for number in self.lostNumbers.numbers(ofText: cell) {
      self.nonfinite.append(
        Nonfinite(name: name, value: number.value, place: (cell, Int(number.offset))))
    }
  }

  /// Reopens the object and adds the member that lists the numbers written as `null`.
  @inline(never)
  private func appendNonfinite(_ row: RecordBatch.Row, to output: inout ByteBuffer) {
    output.truncate(to: output.count - 1)
    output.append(utf8: ",\"_nonfinite\":")
    let start = output.count
    var text: UInt64?
    var places = JSONPlaces(UnsafeBufferPointer(start: nil, count: 0))
    for number in self.nonfinite {
      self.append(number.name, to: &output)
      if let place = number.place {
        // The name continues before its closing quote.
        output.truncate(to: output.count - 1)
        if text != place.cell { places = JSONPlaces(row.bytes(place.cell)) }
        text = place.cell
        places.appendPath(to: place.offset, into: &output)
        output.append(UInt8(ascii: "\""))
      }
      output.append(UInt8(ascii: ":"))
      if number.value.isNaN {
        output.append(utf8: "\"NaN\"")
      } else if number.value < 0 {
        output.append(utf8: "\"-Infinity\"")
      } else {
        output.append(utf8: "\"Infinity\"")
      }
    }
    output.base[start] = UInt8(ascii: "{")
    output.append(utf8: "}}")
    self.nonfinite.removeAll(keepingCapacity: true)
  }

  // MARK: Text of the plan

  @inline(__always)
  func append(_ text: NDJSONPlan.Text, to output: inout ByteBuffer) {
    let count = Int(text.count)
    text.copy(
      from: self.plan.text,
      to: UnsafeMutableRawPointer(output.reserve(count &+ NDJSONPlanCompiler.padding)))
    output.commit(count)
  }
}
