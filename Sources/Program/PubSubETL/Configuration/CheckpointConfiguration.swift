import JSON

/// Where positions are stored between runs (`checkpoint`).
struct CheckpointConfiguration: KeyedObject, Sendable, Equatable {
  /// Absolute.
  var directory = ""
  var renewAfter = Duration.seconds(12 * 3600)

  static var keys: [Key<Self>] {
    [
      .type("file", called: "checkpoint", "A file per pipeline."),
      .required(
        "directory", \.directory, .path, "Holds the state; relative to this file.",
        example: "../state"),
      // Retention is 72 h: renewing later than half of it would come too late after one miss.
      .key(
        "renew_after", \.renewAfter, .duration(in: .seconds(60) ... .seconds(36 * 3600)),
        "A position that was not confirmed for this long is renewed before a run ends as "
          + "caught up.", example: "6h"),
    ]
  }
}
