package import Pipeline

/// Lines of JSON, with the configurable forms of values.
package struct NDJSONFormat: RowFormat, Equatable {
  /// Writes Avro `long` as a string in every column, for readers that only have doubles. Applies only
  /// to whole columns, because the text of an array or a map is created once for all sinks and does
  /// not distinguish `long` from `int`.
  package var int64AsStrings: Bool

  package init(int64AsStrings: Bool = false) { self.int64AsStrings = int64AsStrings }

  package var name: String { self.int64AsStrings ? "ndjson, int64 as strings" : "ndjson" }

  package func encoder(for layout: RecordLayout, of kind: RowKind) -> any RowEncoder {
    NDJSONEncoder(
      layout: layout, format: self, isOfReads: kind == .reads, tellsPlaces: kind == .placedEvents)
  }
}
