/// How often special events and values occur, as shares (0…1) of the events, or of the values for the last
/// four.
public struct GeneratorMix: Sendable, Equatable {
  public var gaps = 0.003
  public var overflows = 0.0003
  public var wildcards = 0.0005
  /// Changes of several records in one event.
  public var merged = 0.02
  public var diffs = 0.01
  /// Updates by the platform that set coordinates only.
  public var geocodes = 0.01
  /// Platform events among all, where both kinds are generated.
  public var platformEvents = 0.15
  /// Merged updates of 200 records with a text of nearly 1 MB.
  public var large = 0.0
  /// Changed fields that are set to null.
  public var nulls = 0.15
  /// Texts with emoji, combining marks, control characters, U+0000 and so on.
  public var exotic = 0.1
  /// Very large, very small and negative-zero numbers, which make sums meaningless.
  public var extremes = 0.0
  /// Events after which a record's `SystemModstamp` moves without an event, where there are records to
  /// read.
  public var silent = 0.02
  /// NaN and infinities. The service is not known to send them.
  public var nonfinite = 0.0

  public init() {}
}
