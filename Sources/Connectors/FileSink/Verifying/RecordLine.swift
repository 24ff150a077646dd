internal import Pipeline

/// Reads lines of one object's files, and lines of records encoded in the same way, as patches.
struct RecordLine {
  /// Why a line is refused; never a value.
  struct Fault: Error { var reason: String }

  private let columns: ComparedColumns
  private var members: [ObjectScanner.Member] = []
  /// For each key of the table, its place in `members`; -1 for keys that the line does not have.
  private var places: [Int32]
  /// The elements of the current list.
  private var elements: [Range<Int>] = []
  /// For each column, whether the line changes it, and whether its value is a diff.
  private var isNamed: [Bool]
  private var isDiff: [Bool]

  private static let maxIDByteCount = 64

  init(_ columns: ComparedColumns) {
    self.columns = columns
    self.places = Array(repeating: -1, count: columns.keys.count)
    self.isNamed = Array(repeating: false, count: columns.count)
    self.isDiff = self.isNamed
  }

  /// The line's record and its place.
  struct Head {
    /// The line's own place, if it has one.
    var epoch: Int64?
    var ordinal: Int64?
    var patch: RecordPatch
  }

  /// Replaces `id` and `bytes` by the record's ID and the patch with its cells.
  ///
  /// - Parameters:
  ///   - epoch: the epoch of the line's file.
  ///   - ordinal: the number of the file's first event.
  /// - Returns: nil for a line that does not identify a record by ID.
  mutating func read(
    _ line: UnsafeBufferPointer<UInt8>, epoch: Int64, ordinal: Int64, id: inout [UInt8],
    bytes: inout [UInt8]
  ) throws(Fault) -> Head? {
    try self.scan(line)
    let kind = try self.text(.kind, line)
    guard let kind, Self.kinds.contains(where: { kind.equals($0) }) else {
      guard let kind, Self.otherKinds.contains(where: { kind.equals($0) }) else {
        throw Fault(reason: "its _kind is not one that this program writes")
      }
      return nil
    }
    guard let record = try self.text(.recordID, line), !record.isEmpty,
      record.count <= Self.maxIDByteCount, !record.contains(UInt8(ascii: "\\"))
    else { throw Fault(reason: "it has no _record_id") }
    id.replaceAll(with: record)
    let isRead = kind.equals("snapshot")
    let changeType = try self.text(.changeType, line) ?? UnsafeBufferPointer(rebasing: line[..<0])
    guard
      let effect = isRead
        ? try self.effectOfRead(changeType) : Self.effect(changeType, isGap: kind.equals("gap"))
    else { throw Fault(reason: "its _change_type is not one that this program writes") }
    var patch = RecordPatch(effect)
    if isRead { patch.flags.insert(.isRead) }
    if changeType.equals("CREATE") || changeType.equals("GAP_CREATE") {
      patch.flags.insert(.isCreation)
    } else if changeType.equals("UNDELETE") || changeType.equals("GAP_UNDELETE") {
      patch.flags.insert(.isRestoration)
    }
    patch.time = try self.time(isRead ? .stamp : .commitTimestamp, line) ?? Int64.min
    if isRead, patch.time == Int64.min { throw Fault(reason: "it has no _system_modstamp") }
    patch.readAt = try self.time(.readAt, line) ?? Int64.min
    let own = (
      epoch: try self.number(.epoch, line), ordinal: try self.number(.ordinal, line)
    )
    // A read belongs at the place of its file; its own place is that of the last event before it
    // was written.
    patch.epoch = isRead ? epoch : own.epoch ?? epoch
    patch.ordinal = isRead ? ordinal : own.ordinal ?? ordinal
    bytes.removeAll(keepingCapacity: true)
    patch.append(to: &bytes)
    switch effect {
    case .image: self.appendAll(line, to: &bytes)
    case .deletion: self.appendAll(line, withNulls: false, to: &bytes)
    case .update, .fields:
      // A refresh without a list has all fields.
      if self.places[self.key(.changedFields)] < 0, effect == .fields {
        for column in self.isNamed.indices { self.isNamed[column] = true }
      }
      try self.appendNamed(line, isRead: isRead, to: &bytes)
    case .gapUpdate, .gapDeletion, .gapRevival: break
    }
    return Head(epoch: own.epoch, ordinal: own.ordinal, patch: patch)
  }

  /// Whether the last line read has a key for the column.
  func has(_ column: Int) -> Bool { self.places[column] >= 0 }

  // MARK: Meaning

  private static let kinds: [StaticString] = ["change", "snapshot", "gap"]
  private static let otherKinds: [StaticString] = ["overflow", "wildcard", "event"]

  /// A read without a field list has all fields.
  private func effectOfRead(
    _ type: UnsafeBufferPointer<UInt8>
  ) throws(Fault) -> RecordPatch.Effect? {
    if type.equals("SNAPSHOT_DELETE") { return .deletion }
    if type.equals("SNAPSHOT_REFRESH") { return .fields }
    guard type.equals("SNAPSHOT") else { return nil }
    return self.places[self.key(.changedFields)] >= 0 ? .update : .image
  }

  private static func effect(
    _ type: UnsafeBufferPointer<UInt8>, isGap: Bool
  ) -> RecordPatch.Effect? {
    if isGap {
      if type.equals("GAP_UPDATE") { return .gapUpdate }
      return type.equals("GAP_DELETE") ? .gapDeletion : .gapRevival
    }
    if type.equals("UPDATE") { return .update }
    if type.equals("CREATE") || type.equals("UNDELETE") { return .image }
    return type.equals("DELETE") ? .deletion : nil
  }

  // MARK: Cells

  private func appendAll(
    _ line: UnsafeBufferPointer<UInt8>, withNulls: Bool = true, to bytes: inout [UInt8]
  ) {
    for column in 0..<self.columns.count {
      self.appendCell(column, line, withNulls: withNulls, to: &bytes)
    }
  }

  /// A null in the line is a value that was read or set.
  private func appendCell(
    _ column: Int, _ line: UnsafeBufferPointer<UInt8>, withNulls: Bool = true,
    to bytes: inout [UInt8]
  ) {
    guard self.places[column] >= 0 else { return }
    let value = UnsafeBufferPointer(
      rebasing: line[self.members[Int(self.places[column])].value])
    let isNull = value.equals("null")
    if isNull, !withNulls { return }
    RecordPatch.appendCell(
      column, isNull ? .null : .value, isNull ? UnsafeBufferPointer(rebasing: value[..<0]) : value,
      to: &bytes)
  }

  /// Appends the columns that the lists name; those that the line does not have are null.
  private mutating func appendNamed(
    _ line: UnsafeBufferPointer<UInt8>, isRead: Bool, to bytes: inout [UInt8]
  ) throws(Fault) {
    try self.mark(.changedFields, line) { $0.isNamed[$1] = true }
    try self.mark(.nulledFields, line) { $0.isNamed[$1] = true }
    try self.mark(.diffFields, line) { $0.isDiff[$1] = true }
    for column in 0..<self.columns.count where self.isNamed[column] || self.isDiff[column] {
      if self.isDiff[column] {
        RecordPatch.appendCell(column, .staleNull, EmptyCollection<UInt8>(), to: &bytes)
      } else if self.places[column] >= 0 {
        self.appendCell(column, line, to: &bytes)
      } else {
        RecordPatch.appendCell(column, .null, EmptyCollection<UInt8>(), to: &bytes)
      }
      self.isNamed[column] = false
      self.isDiff[column] = false
    }
  }

  private mutating func mark(
    _ meta: ComparedColumns.Meta, _ line: UnsafeBufferPointer<UInt8>,
    _ set: (inout Self, Int) -> Void
  ) throws(Fault) {
    let place = self.places[self.key(meta)]
    guard place >= 0 else { return }
    let list = UnsafeBufferPointer(rebasing: line[self.members[Int(place)].value])
    if list.equals("null") { return }
    do throws(ObjectScanner.Fault) {
      try ObjectScanner.elements(list, into: &self.elements)
    } catch {
      throw Fault(reason: "its \(meta.name) is not a list")
    }
    for element in self.elements {
      let name = list[element]
      guard name.first == UInt8(ascii: "\"") else {
        throw Fault(reason: "its \(meta.name) is not a list of names")
      }
      let key = UnsafeBufferPointer(rebasing: name.dropFirst().dropLast())
      if let column = self.columns.keys.index(of: key), column < self.columns.count {
        set(&self, column)
      }
    }
  }

  // MARK: Members

  private mutating func scan(_ line: UnsafeBufferPointer<UInt8>) throws(Fault) {
    for index in self.places.indices { self.places[index] = -1 }
    do throws(ObjectScanner.Fault) {
      try ObjectScanner.scan(line, into: &self.members)
    } catch {
      throw Fault(reason: "it is not a JSON object at byte \(error.offset)")
    }
    for (place, member) in self.members.enumerated() {
      let key = UnsafeBufferPointer(rebasing: line[member.key])
      if let index = self.columns.keys.index(of: key) { self.places[index] = Int32(place) }
    }
  }

  private func key(_ meta: ComparedColumns.Meta) -> Int { self.columns.count + meta.rawValue }

  /// nil if the key is missing or null.
  private func value(
    _ meta: ComparedColumns.Meta, _ line: UnsafeBufferPointer<UInt8>
  ) -> UnsafeBufferPointer<UInt8>? {
    let place = self.places[self.key(meta)]
    guard place >= 0 else { return nil }
    let value = UnsafeBufferPointer(rebasing: line[self.members[Int(place)].value])
    return value.equals("null") ? nil : value
  }

  /// Between the quotes.
  private func text(
    _ meta: ComparedColumns.Meta, _ line: UnsafeBufferPointer<UInt8>
  ) throws(Fault) -> UnsafeBufferPointer<UInt8>? {
    guard let value = self.value(meta, line) else { return nil }
    guard value.first == UInt8(ascii: "\"") else {
      throw Fault(reason: "its \(meta.name) is not a string")
    }
    return UnsafeBufferPointer(rebasing: value.dropFirst().dropLast())
  }

  private func time(
    _ meta: ComparedColumns.Meta, _ line: UnsafeBufferPointer<UInt8>
  ) throws(Fault) -> Int64? {
    guard let text = try self.text(meta, line) else { return nil }
    guard let time = TimestampText.milliseconds(text) else {
      throw Fault(reason: "its \(meta.name) is not a timestamp")
    }
    return time
  }

  private func number(
    _ meta: ComparedColumns.Meta, _ line: UnsafeBufferPointer<UInt8>
  ) throws(Fault) -> Int64? {
    guard let value = self.value(meta, line) else { return nil }
    guard let number = Int64(String(decoding: value, as: UTF8.self)), number >= 0 else {
      throw Fault(reason: "its \(meta.name) is not a number")
    }
    return number
  }
}

/// Times as lines have them: `2026-02-17T04:03:15.000Z`, and years outside 0001–9999 with a sign
/// and nine digits or fewer. Days beyond 64 bits of milliseconds count as the last representable
/// day.
enum TimestampText {
  private static let dayRange: ClosedRange<Int64> = -106_000_000_000...106_000_000_000

  static func milliseconds(_ text: UnsafeBufferPointer<UInt8>) -> Int64? {
    var offset = 0
    var sign: Int64 = 1
    if let first = text.first, first == UInt8(ascii: "+") || first == UInt8(ascii: "-") {
      sign = first == UInt8(ascii: "-") ? -1 : 1
      offset = 1
    }
    guard let dash = text[offset...].firstIndex(of: UInt8(ascii: "-")), dash - offset >= 4,
      dash - offset <= 9, let year = Self.number(text, offset..<dash), text.count == dash + 20,
      Self.has(text, dash, "-..-..T..:..:......Z"),
      let month = Self.number(text, dash + 1..<dash + 3), (1...12).contains(month),
      let day = Self.number(text, dash + 4..<dash + 6), (1...31).contains(day),
      let hour = Self.number(text, dash + 7..<dash + 9), hour < 24,
      let minute = Self.number(text, dash + 10..<dash + 12), minute < 60,
      let second = Self.number(text, dash + 13..<dash + 15), second < 60,
      let millisecond = Self.number(text, dash + 16..<dash + 19)
    else { return nil }
    let days = min(
      max(Self.days(year: sign * year, month: month, day: day), Self.dayRange.lowerBound),
      Self.dayRange.upperBound)
    return ((days * 24 + hour) * 60 + minute) * 60_000 + second * 1000 + millisecond
  }

  private static func has(
    _ text: UnsafeBufferPointer<UInt8>, _ start: Int, _ pattern: StaticString
  ) -> Bool {
    // The dot before the milliseconds is any byte here; digits are checked as numbers.
    for index in 0..<pattern.utf8CodeUnitCount {
      let byte = pattern.utf8Start[index]
      if byte != UInt8(ascii: "."), text[start + index] != byte { return false }
    }
    return true
  }

  private static func number(_ text: UnsafeBufferPointer<UInt8>, _ range: Range<Int>) -> Int64? {
    var value: Int64 = 0
    for byte in text[range] {
      guard (0x30...0x39).contains(byte) else { return nil }
      value = value * 10 + Int64(byte - 0x30)
    }
    return value
  }

  /// Since 1970, in the proleptic Gregorian calendar.
  private static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
    let shifted = month <= 2 ? year - 1 : year
    let era = (shifted >= 0 ? shifted : shifted - 399) / 400
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }
}

extension UnsafeBufferPointer<UInt8> {
  @inline(__always)
  func equals(_ text: StaticString) -> Bool {
    self.count == text.utf8CodeUnitCount
      && self.elementsEqual(
        UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }
}
