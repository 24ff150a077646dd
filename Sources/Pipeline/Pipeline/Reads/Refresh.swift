/// Fields of an object whose values are read again and again, because they change without events.
package struct Refresh: Sendable, Equatable {
  package typealias Instant = ContinuousClock.Instant

  /// Names of fields, which events need not have; nil for every formula and roll-up.
  package var fields: Set<String>?
  /// The time from the beginning of a read to that of the next.
  package var every: Duration
  /// Stages need other columns of the records, so all columns are read.
  package var readsRecords = false

  package init(fields: Set<String>?, every: Duration) {
    self.fields = fields
    self.every = every
  }

  package static let partPrefix = "refresh:"

  /// Fields that every row has in another form: a refresh finds records that are not deleted.
  package static let ofEveryRow: Set<String> = ["Id", "IsDeleted"]

  /// The part of its passes. Another list of fields has another part, so its first read is due at
  /// once.
  var part: String {
    Self.partPrefix + (self.fields.map { ReadPass.hash($0) } ?? "blind")
  }

  /// The key of its passes over an object.
  package func key(of entity: String) -> String { ReadPass.key(entity: entity, part: self.part) }

  /// When a store needs the next read. A read of all records has brought the values, too.
  ///
  /// - Parameters:
  ///   - pass: the last pass over the fields.
  ///   - whole: the last pass over all columns.
  package func dueAt(after pass: ReadPass?, whole: ReadPass?, now: Instant) -> Instant {
    if let whole, whole.state != .complete { return now + self.every }
    if let pass, pass.state != .complete { return now }
    // The first read shows whether the listed fields exist.
    if pass == nil, self.fields != nil { return now }
    let last = [pass, whole].compactMap { $0.flatMap { $0.begunAt ?? $0.requestedAt } }.max()
    return last.map { $0 + self.every } ?? now
  }
}
