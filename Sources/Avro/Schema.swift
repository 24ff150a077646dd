public import JSON

/// A parsed Avro schema (Avro 1.12 specification, "Schema Declaration").
///
/// All types stand in one table and refer to each other by `TypeID`, so that a record may contain
/// itself. A named type is listed once, however often it is named.
public struct Schema: Sendable {
  /// Place of a type in its schema's table.
  public struct TypeID: Hashable, Sendable {
    let index: Int
  }

  public struct Definition: Sendable {
    public var kind: Kind
    /// Records, enums and fixed have a name.
    public var name: Name?
    public var aliases: [Name] = []
    public var doc: String?
    /// Valid ones only: the specification asks to ignore the others.
    public var logicalType: LogicalType?
  }

  public enum Kind: Sendable {
    case null, boolean, int, long, float, double, bytes, string
    case record(fields: [Field])
    case enumeration(symbols: [String], defaultSymbol: String?)
    case array(items: TypeID)
    case map(values: TypeID)
    /// Size in bytes.
    case fixed(size: Int)
    case union(branches: [TypeID])
  }

  public struct Field: Sendable {
    public var name: String
    public var aliases: [String]
    public var doc: String?
    public var type: TypeID
    public var defaultValue: JSONValue?
    public var order: Order
  }

  public enum Order: String, Sendable { case ascending, descending, ignore }

  /// The full name of a named type.
  public struct Name: Hashable, Sendable {
    /// Empty for the null namespace.
    public let namespace: String
    public let name: String
    public var full: String {
      self.namespace.isEmpty ? self.name : "\(self.namespace).\(self.name)"
    }
  }

  let definitions: [Definition]
  public let root: TypeID

  public subscript(_ type: TypeID) -> Definition { self.definitions[type.index] }
}

/// What a value means beyond how it is encoded (specification, "Logical Types").
public enum LogicalType: Hashable, Sendable {
  public enum TimeUnit: Hashable, Sendable { case milliseconds, microseconds, nanoseconds }
  /// On bytes and fixed: two's complement, big-endian, times 10^-scale.
  case decimal(precision: Int, scale: Int)
  /// On bytes that hold the unscaled number as Avro bytes, then its scale as an Avro int.
  case bigDecimal
  /// On string (36 characters) and fixed of 16 bytes.
  case uuid
  /// On int: days since 1970-01-01.
  case date
  /// On int (milliseconds) and long (microseconds): since midnight.
  case time(TimeUnit)
  /// On long: since 1970-01-01T00:00:00, in UTC or, local, in no time zone.
  case timestamp(TimeUnit, isLocal: Bool)
  /// On fixed of 12 bytes: months, days, milliseconds as little-endian UInt32.
  case duration
}

/// How large a schema may be before it is refused.
public struct SchemaLimits: Sendable {
  /// Bytes of JSON text.
  public var byteCount: Int
  /// Types inside types, named types counted where they are defined.
  public var depth: Int
  /// Types, fields and symbols together.
  public var elements: Int
  /// Bytes of one full name, field name or symbol. A short reference stands for a long name, so
  /// that without it the canonical form could be as long as the text's square.
  public var nameByteCount: Int

  public init(
    byteCount: Int = 4 << 20, depth: Int = 64, elements: Int = 200_000, nameByteCount: Int = 512
  ) {
    self.byteCount = byteCount
    self.depth = depth
    self.elements = elements
    self.nameByteCount = nameByteCount
  }
}
