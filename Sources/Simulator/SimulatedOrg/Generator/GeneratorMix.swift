/// How often special events and values occur, as shares (0…1) of the events, or of the values for the last
/// four.
package struct GeneratorMix: Sendable, Equatable {
  package var gaps = 0.003
  package var overflows = 0.0003
  package var wildcards = 0.0005
  /// Changes of several records in one event.
  package var merged = 0.02
  package var diffs = 0.01
  /// Updates by the platform that set coordinates only.
  package var geocodes = 0.01
  /// Platform events among all, where both kinds are generated.
  package var platformEvents = 0.15
  /// Merged updates of 200 records with a text of nearly 1 MB.
  package var large = 0.0
  /// Changed fields that are set to null.
  package var nulls = 0.15
  /// Texts with emoji, combining marks, control characters, U+0000 and so on.
  package var exotic = 0.1
  /// Very large, very small and negative-zero numbers, which make sums meaningless.
  package var extremes = 0.0
  /// Events after which a record's `SystemModstamp` moves without an event, where there are records to
  /// read.
  package var silent = 0.02
  /// NaN and infinities. The service is not known to send them.
  package var nonfinite = 0.0

  package init() {}
}
