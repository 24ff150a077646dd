/// The place of an event in a topic: rows have it as `_epoch` and `_ordinal`.
package struct StreamPlace: Sendable, Hashable, Comparable {
  /// From 1; 0 before the first reading of the stream.
  package var epoch: Int
  /// From 0 in each epoch.
  package var ordinal: Int64

  package init(epoch: Int, ordinal: Int64) {
    self.epoch = epoch
    self.ordinal = ordinal
  }

  package static func < (left: Self, right: Self) -> Bool {
    (left.epoch, left.ordinal) < (right.epoch, right.ordinal)
  }
}
