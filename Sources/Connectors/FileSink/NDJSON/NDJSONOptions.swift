/// Configurable forms of values.
public struct NDJSONOptions: Sendable, Equatable {
  /// Writes Avro `long` as a string in every column, for readers that only have doubles.
  public var int64AsStrings: Bool

  public init(int64AsStrings: Bool = false) { self.int64AsStrings = int64AsStrings }
}
