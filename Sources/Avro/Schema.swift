package import JSON

/// A parsed Avro schema (Avro 1.12 specification, "Schema Declaration").
///
/// All types stand in one table and refer to each other by `TypeID`, so that a record may contain
/// itself. A named type is listed once, however often it is named.
public struct Schema: Sendable {
  /// Place of a type in its schema's table.
  public struct TypeID: Hashable, Sendable {
    let index: Int
  }

  /// One type of the table.
  public struct Definition: Sendable {
    /// Which type it is, and of what.
    public var kind: Kind
    /// Records, enums and fixed have a name.
    public var name: Name?
    /// Other names, as the schema lists them; not used in decoding.
    public var aliases: [Name] = []
    /// The attribute `doc`.
    public var doc: String?
    /// Valid ones only: the specification asks to ignore the others.
    public var logicalType: LogicalType?
  }

  /// The types of Avro.
  public enum Kind: Sendable {
    /// Primitive types.
    case null, boolean, int, long, float, double, bytes, string
    /// Fields in the order of their encoding.
    case record(fields: [Field])
    /// Symbols in the order of their indexes.
    case enumeration(symbols: [String], defaultSymbol: String?)
    /// Any number of items of one type.
    case array(items: TypeID)
    /// Any number of values of one type, with strings as keys.
    case map(values: TypeID)
    /// Size in bytes.
    case fixed(size: Int)
    /// One of several types, by the index of the branch.
    case union(branches: [TypeID])
  }

  /// A field of a record.
  public struct Field: Sendable {
    /// Its name, without a namespace.
    public var name: String
    /// Other names, as the schema lists them; not used in decoding.
    public var aliases: [String]
    /// The attribute `doc`.
    public var doc: String?
    /// Place of its type in the table.
    public var type: TypeID
    package var defaultValue: JSONValue?
    /// How it takes part in the sort order of records; not used in decoding.
    public var order: Order
  }

  /// Orders of a field.
  public enum Order: String, Sendable { case ascending, descending, ignore }

  /// The full name of a named type.
  public struct Name: Hashable, Sendable {
    /// Empty for the null namespace.
    public let namespace: String
    /// The part after the last dot.
    public let name: String
    /// Namespace and name, with a dot between them.
    public var full: String {
      self.namespace.isEmpty ? self.name : "\(self.namespace).\(self.name)"
    }
  }

  let definitions: [Definition]
  /// Place of the type that payloads are of.
  public let root: TypeID

  /// A type of the table.
  public subscript(_ type: TypeID) -> Definition { self.definitions[type.index] }
}

/// What a value means beyond how it is encoded (specification, "Logical Types").
public enum LogicalType: Hashable, Sendable {
  /// What a number counts.
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

  /// Limits that suit schemas of up to 4 MiB. All are at least 1.
  public init(
    byteCount: Int = 4 << 20, depth: Int = 64, elements: Int = 200_000, nameByteCount: Int = 512
  ) {
    self.byteCount = byteCount
    self.depth = depth
    self.elements = elements
    self.nameByteCount = nameByteCount
  }
}
