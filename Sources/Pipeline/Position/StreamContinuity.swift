/// Whether a stream that was resumed is the one that the stored position is of.
///
/// Changes come in the order of their commits. So the first one after a position was committed after the
/// newest change before it, but for a tolerance; a stream that begins with an older one is another: the org
/// was refreshed or moved, and the replay ID means another event there. A value without I/O.
package struct StreamContinuity: Sendable {
  /// How much older the first change may be, milliseconds.
  package static let tolerance: Int64 = 3_600_000

  /// The newest commit time of what was exported; nil when there is nothing to compare.
  private var exported: Int64?

  package init() {}

  /// The first change has not come yet.
  package var isOpen: Bool { self.exported != nil }

  /// The stream is about to be opened.
  ///
  /// - Parameter exported: newest commit time before the position, milliseconds since 1970; nil when it is
  ///   not known.
  package mutating func opening(at start: StartPoint?, exported: Int64?) {
    // From any other place, old changes are to come.
    if case .after = start { self.exported = exported } else { self.exported = nil }
  }

  /// Judges a new event; only the first change counts.
  ///
  /// - Parameter commit: when it was committed; nil for what is not a change.
  /// - Returns: the newest commit time of what was exported, if the stream is another one.
  package mutating func judge(commit: Int64?) -> Int64? {
    guard let commit, let exported = self.exported else { return nil }
    self.exported = nil
    return commit < exported - Self.tolerance ? exported : nil
  }
}

/// The stream does not go on where the stored position is: nothing of it is written.
public struct OtherStreamError: Error, Sendable, Equatable {
  public var topic: String
  /// Newest commit time of what was exported, milliseconds since 1970.
  public var exportedAt: Int64
  /// When the first change that came was committed.
  public var committedAt: Int64
}
