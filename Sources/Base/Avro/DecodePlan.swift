internal import Bytes
internal import JSON

/// The compiled steps for decoding payloads of one schema.
///
/// The root record is flattened: every field that holds one value, also in nested records, has its
/// own slot. Unions of null and one type, and of a scalar and one record, are flattened, too;
/// arrays, maps, recursive records and all other unions become JSON text.
public final class DecodePlan: Sendable {
  /// How a schema is compiled.
  public struct Options: Sendable {
    /// The first of the slots that are assigned in order.
    public var firstSlot: Int
    /// Slots assigned by path instead of in order. They may be below `firstSlot`, and shared by
    /// fields of which only one is used.
    public var slots: [[String]: Int]
    /// Paths of arrays of strings to deliver item by item.
    public var lists: Set<[String]>
    /// What a field of type long without a logical type means, from its name and `doc`; nil for
    /// a plain number.
    public var interpretation: @Sendable (Schema.Field) -> ValueType?
    /// The maximum nesting of flattened records; deeper ones become JSON text.
    public var flattenDepth: Int
    /// The maximum number of slots of a plan.
    public var maxSlots: Int

    /// The defaults give every value a slot, in the order of the schema.
    public init(
      firstSlot: Int = 0, slots: [[String]: Int] = [:], lists: Set<[String]> = [],
      flattenDepth: Int = 16, maxSlots: Int = 20_000,
      interpretation: @escaping @Sendable (Schema.Field) -> ValueType? = { _ in nil }
    ) {
      self.firstSlot = firstSlot
      self.slots = slots
      self.lists = lists
      self.flattenDepth = flattenDepth
      self.maxSlots = maxSlots
      self.interpretation = interpretation
    }
  }

  /// A field of the root record or of a flattened record.
  public struct Field: Sendable {
    /// Name of the field; empty for a root that is not a record.
    public var name: String
    /// The names from the root record to this field.
    public var path: [String]
    /// The attribute `doc` of the schema.
    public var doc: String?
    /// What the visitor gets for the field.
    public var content: Content

    /// What the visitor gets for a field.
    public indirect enum Content: Sendable {
      /// One value, or the text of a value that is not flattened.
      case value(slot: Int, ValueType)
      /// `slot` is visited if the record is present. `scalar` is the other branch of a union of a
      /// scalar and a record.
      case record(slot: Int, scalar: Scalar?, fields: [Field])
      /// An array of strings, delivered item by item.
      case list(slot: Int)
    }

    /// The branch of a union that is not a record.
    public struct Scalar: Sendable {
      /// Its slot.
      public var slot: Int
      /// What the slot holds.
      public var type: ValueType
    }
  }

  /// The fields of the root record, in schema order. A root of another type is a single field
  /// without a name.
  public let fields: [Field]
  /// One more than the highest slot assigned in order.
  public let slotCount: Int
  /// The limits of a payload.
  public let limits: DecodeLimits

  /// The steps of all programs, one program after the other.
  @usableFromInline nonisolated(unsafe) let steps: UnsafePointer<Step>
  // Guard: written by `init` before anybody else sees the plan, and never again.
  /// The first step of each program, followed by the number of steps.
  @usableFromInline nonisolated(unsafe) let bounds: UnsafePointer<Int32>
  // Guard: as for `steps`.
  /// Field names by step, for errors.
  private let names: [String]
  let transcoder: JSONTranscoder
  /// Place of the root in the schema's table.
  let root: Int

  /// Compiles a schema.
  ///
  /// - Parameters:
  ///   - schema: the schema with which the payloads were written.
  ///   - options: which value goes to which slot.
  ///   - limits: the limits of a payload.
  /// - Throws: `limitExceeded` for a schema that needs more slots than `options.maxSlots`.
  public init(
    _ schema: Schema, options: Options = Options(), limits: DecodeLimits = DecodeLimits()
  ) throws(AvroError) {
    var compiler = PlanCompiler(schema, options: options)
    self.fields = try compiler.compileRoot()
    self.slotCount = compiler.nextSlot
    self.limits = limits
    self.root = schema.root.index
    self.transcoder = JSONTranscoder(schema, interpretation: options.interpretation)
    let steps = compiler.programs.flatMap { $0.map(\.step) }
    self.names = compiler.programs.flatMap { $0.map(\.name) }
    let stepStorage = UnsafeMutablePointer<Step>.allocate(capacity: max(steps.count, 1))
    _ = UnsafeMutableBufferPointer(start: stepStorage, count: steps.count).initialize(from: steps)
    self.steps = UnsafePointer(stepStorage)
    var bounds: [Int32] = [0]
    for program in compiler.programs {
      bounds.append(bounds[bounds.count - 1] + Int32(program.count))
    }
    let boundStorage = UnsafeMutablePointer<Int32>.allocate(capacity: bounds.count)
    _ = UnsafeMutableBufferPointer(start: boundStorage, count: bounds.count)
      .initialize(from: bounds)
    self.bounds = UnsafePointer(boundStorage)
  }

  deinit {
    self.steps.deallocate()
    self.bounds.deallocate()
  }

  @usableFromInline @inline(never)
  func locate(_ error: AvroError, at step: Int) -> AvroError {
    let name = self.names[step]
    return name.isEmpty ? error : error.inside(name)
  }
}

/// One field of a program, 16 bytes.
@frozen @usableFromInline
struct Step: Sendable {
  @usableFromInline
  enum Operation: UInt8, Sendable {
    /// The type null: no bytes, no visit.
    case nothing
    case boolean, int, long, float, double, enumeration
    /// Strings, also with a logical type that does not restrict them.
    case string
    case uuidString
    case uuidFixed
    case bytes
    case decimalBytes
    case decimalFixed
    case bigDecimal
    case fixed
    /// `argument`: program of the record's fields.
    case record
    /// `argument`: program with one step per branch.
    case union
    /// Array of strings, item by item.
    case list
    /// `argument`: type in the schema's table.
    case json
  }

  @usableFromInline
  enum NullBranch: UInt8, Sendable { case none, first, second }

  @usableFromInline var operation: Operation
  /// Place of null in a union of null and one type.
  @usableFromInline var nullBranch: NullBranch
  /// The number of fields, from this one, for which a zero byte means null.
  @usableFromInline var nullRun: UInt16
  @usableFromInline var slot: Int32
  /// The number of symbols of an enum, the size of a fixed, or the maximum bytes of a decimal;
  /// otherwise see the operation.
  @usableFromInline var argument: Int32
  /// Size of a decimal fixed.
  @usableFromInline var size: Int32
}

/// Memory that decoding uses and keeps between payloads. Used by one thread at a time.
public final class DecodeScratch {
  /// Items still allowed in this payload.
  @exclusivity(unchecked) @usableFromInline var itemBudget = 0
  /// Bytes of text still allowed in this payload.
  @exclusivity(unchecked) @usableFromInline var textBudget = 0
  @exclusivity(unchecked) var text = ByteBuffer()
  /// Numbers that the current JSON text has as `null`, because JSON cannot express them.
  @exclusivity(unchecked) @usableFromInline var nonfinite: [NonfiniteNumber] = []

  /// Creates memory that grows with the first payloads.
  public init() {}

  /// Writes a number, or `null` with a note of the number.
  func appendJSON(_ value: Double) {
    if !value.isFinite { self.note(Float(value)) }
    self.text.appendJSON(value)
  }

  func appendJSON(_ value: Float) {
    if !value.isFinite { self.note(value) }
    self.text.appendJSON(value)
  }

  @inline(never)
  private func note(_ value: Float) {
    self.nonfinite.append(NonfiniteNumber(offset: self.text.count, value: value))
  }
}

/// NaN or an infinity, and where the JSON text has `null` in its place.
@frozen @usableFromInline
struct NonfiniteNumber: Sendable {
  @usableFromInline var offset: Int
  @usableFromInline var value: Float
}
