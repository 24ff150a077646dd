package import JSON

/// A parsed Avro schema (Avro 1.12 specification, "Schema Declaration").
///
/// All types are in one table and refer to each other by `TypeID`, so that a record may contain
/// itself. A named type is listed once, however often it is used.
public struct Schema: Sendable {
  /// The place of a type in its schema's table.
  public struct TypeID: Hashable, Sendable {
    let index: Int
  }

  /// One type in the table.
  public struct Definition: Sendable {
    /// The kind of type, with its parts.
    public var kind: Kind
    /// The name of a record, enum or fixed.
    public var name: Name?
    /// Other names, as the schema lists them; not used in decoding.
    public var aliases: [Name] = []
    /// The attribute `doc`.
    public var doc: String?
    /// Only if valid; the specification requires ignoring others.
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
    /// One of several types, chosen by the index of the branch.
    case union(branches: [TypeID])
  }

  /// A field of a record.
  public struct Field: Sendable {
    /// The field's name, without a namespace.
    public var name: String
    /// Other names, as the schema lists them; not used in decoding.
    public var aliases: [String]
    /// The attribute `doc`.
    public var doc: String?
    /// The place of the field's type in the table.
    public var type: TypeID
    package var defaultValue: JSONValue?
    /// The field's role in the sort order of records; not used in decoding.
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
  /// The type of payloads.
  public let root: TypeID

  /// A type in the table.
  public subscript(_ type: TypeID) -> Definition { self.definitions[type.index] }
}

/// The meaning of a value beyond its encoding (specification, "Logical Types").
public enum LogicalType: Hashable, Sendable {
  /// The unit that a number counts.
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
  /// On long: since 1970-01-01T00:00:00, in UTC or, if local, without a time zone.
  case timestamp(TimeUnit, isLocal: Bool)
  /// On fixed of 12 bytes: months, days, milliseconds as little-endian UInt32.
  case duration
}

/// The limits beyond which a schema is refused.
public struct SchemaLimits: Sendable {
  /// Bytes of JSON text.
  public var byteCount: Int
  /// The nesting of types, with named types counted where they are defined.
  public var depth: Int
  /// The total number of types, fields and symbols.
  public var elements: Int
  /// Bytes of one full name, field name or symbol. Without this limit, the canonical form could
  /// grow with the square of the text, because a short reference may stand for a long name.
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
