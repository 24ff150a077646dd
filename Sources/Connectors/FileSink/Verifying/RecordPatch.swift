/// The effect of a line on its record, or a record's known state. Kept in scratch files, so that
/// lines are parsed once.
///
/// A header of fixed size, followed by cells: column, state, and the text of the value as JSON.
struct RecordPatch: Equatable {
  /// The effect on the record.
  enum Effect: UInt8 {
    /// All columns get new values; those without a cell become null.
    case image
    /// Columns with a cell have new values.
    case update
    /// As `update`, by a refresh: it says nothing else about the record, not even that it exists.
    case fields
    case deletion
    /// A gap event: the record was changed in an unknown way.
    case gapUpdate
    case gapDeletion
    /// A gap event after which the record exists.
    case gapRevival

    var isGap: Bool {
      switch self {
      case .gapUpdate, .gapDeletion, .gapRevival: true
      case .image, .update, .fields, .deletion: false
      }
    }
  }

  struct Flags: OptionSet {
    let rawValue: UInt8
    /// The record was read; otherwise it was changed.
    static let isRead = Self(rawValue: 1)
    static let isStale = Self(rawValue: 2)
    /// The read or image lacked some columns.
    static let isPartial = Self(rawValue: 4)
    /// A record that the org has, but whose values cannot be written.
    static let isUnreadable = Self(rawValue: 8)
    /// A record that a condition of a stage leaves out.
    static let isLeftOut = Self(rawValue: 16)
    /// A record that a stage refuses.
    static let isRefused = Self(rawValue: 32)
    /// The record was created, also by a gap event. A record that was read existed already.
    static let isCreation = Self(rawValue: 64)
    /// The record was undeleted, also by a gap event.
    static let isRestoration = Self(rawValue: 128)
  }

  enum CellState: UInt8 {
    case null, value
    /// A change to the column came as a diff instead of a value, so its text cannot be right.
    case staleNull, staleValue

    var isStale: Bool { self == .staleNull || self == .staleValue }
    var isNull: Bool { self == .null || self == .staleNull }
  }

  var effect: Effect
  var flags: Flags = []
  /// The commit time, or a read's `SystemModstamp`, in milliseconds since 1970; `Int64.min` if
  /// unknown.
  var time = Int64.min
  /// Milliseconds since 1970.
  var readAt = Int64.min
  /// The place of the line in the stream, or that of its file.
  var epoch: Int64 = 0
  var ordinal: Int64 = 0

  static let byteCount = 34

  init(_ effect: Effect) { self.effect = effect }

  /// - Parameter bytes: as written by `append`; only from our own scratch files.
  init(_ bytes: [UInt8]) {
    guard let effect = Effect(rawValue: bytes[0]) else {
      preconditionFailure("a patch with effect \(bytes[0])")
    }
    self.effect = effect
    self.flags = Flags(rawValue: bytes[1])
    self.time = bytes.number(at: 2, Int64.self)
    self.readAt = bytes.number(at: 10, Int64.self)
    self.epoch = bytes.number(at: 18, Int64.self)
    self.ordinal = bytes.number(at: 26, Int64.self)
  }

  func append(to bytes: inout [UInt8]) {
    bytes.append(self.effect.rawValue)
    bytes.append(self.flags.rawValue)
    for number in [self.time, self.readAt, self.epoch, self.ordinal] { bytes.appendNumber(number) }
  }

  static func appendCell(
    _ column: Int, _ state: CellState, _ value: some Collection<UInt8>, to bytes: inout [UInt8]
  ) {
    bytes.appendNumber(UInt32(column))
    bytes.append(state.rawValue)
    bytes.appendNumber(UInt32(value.count))
    bytes.append(contentsOf: value)
  }

  /// The columns that have a cell.
  static func columns(of bytes: [UInt8]) -> [Int] {
    var columns: [Int] = []
    Self.forEachCell(of: bytes) { column, _, _ in columns.append(column) }
    return columns
  }

  /// Calls `body` with each cell after the header.
  static func forEachCell(
    of bytes: [UInt8], _ body: (_ column: Int, _ state: CellState, _ value: Range<Int>) -> Void
  ) {
    var offset = Self.byteCount
    while offset < bytes.count {
      let column = Int(bytes.number(at: offset, UInt32.self))
      guard let state = CellState(rawValue: bytes[offset + 4]) else {
        preconditionFailure("a cell with state \(bytes[offset + 4])")
      }
      let count = Int(bytes.number(at: offset + 5, UInt32.self))
      body(column, state, offset + 9..<offset + 9 + count)
      offset += 9 + count
    }
  }
}
