/// How values are written where a user has the choice.
public struct NDJSONOptions: Sendable, Equatable {
  /// Avro `long` goes out as a string in every column, for readers that have doubles only.
  public var int64AsStrings: Bool

  public init(int64AsStrings: Bool = false) { self.int64AsStrings = int64AsStrings }
}
