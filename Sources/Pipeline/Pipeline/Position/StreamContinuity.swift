/// Checks that the stored position belongs to the resumed stream.
///
/// Changes arrive in commit order. So, within a tolerance, the first change after a position was
/// committed after the newest change before it. If it is older, the stream is a different one: the
/// org was refreshed or moved, and the replay ID now means another event. A value type without I/O.
package struct StreamContinuity: Sendable {
  /// How much older the first change may be, in milliseconds.
  package static let tolerance: Int64 = 3_600_000

  /// The newest exported commit time; nil if there is nothing to compare.
  private var exported: Int64?

  package init() {}

  /// Whether the first change is still to arrive.
  package var isOpen: Bool { self.exported != nil }

  /// Call this before the stream is opened.
  ///
  /// - Parameter exported: the newest commit time before the position, in milliseconds since 1970;
  ///   nil if unknown.
  package mutating func opening(at start: StartPoint?, exported: Int64?) {
    // At any other start, old changes are expected.
    if case .after = start { self.exported = exported } else { self.exported = nil }
  }

  /// Judges a new event; only the first change counts.
  ///
  /// - Parameter commit: the event's commit time; nil if it is not a change.
  /// - Returns: the newest exported commit time if the stream is a different one.
  package mutating func judge(commit: Int64?) -> Int64? {
    guard let commit, let exported = self.exported else { return nil }
    self.exported = nil
    return commit < exported - Self.tolerance ? exported : nil
  }
}

/// The stream does not continue the stored position, so none of it is written.
package struct OtherStreamError: Error, Sendable, Equatable {
  package var topic: String
  /// The newest commit time of the exported changes, in milliseconds since 1970.
  package var exportedAt: Int64
  /// The commit time of the first change.
  package var committedAt: Int64
}
