import Clocks
import Pipeline

/// An object in a sink's copy, before it is compared.
struct ComparedPart: Sendable {
  var object: ReadObject
  let sink: any VerifyingSink
  /// What is known before.
  var entry: VerifyReport.Entry
}

/// The comparison of an object in a sink's copy.
final class PartComparison: @unchecked Sendable {
  // Used by one task at a time: `SideBySide` takes it back before it begins another step.

  private(set) var entry: VerifyReport.Entry
  private let records: ObjectVerification
  private let undecidable: [CopyFindings.LeftOut]
  private let idLimit: Int
  private let onEnd: (CopyFindings) throws -> Void
  /// Records that have differed in all readings so far.
  private(set) var differingCount = 0

  /// - Parameters:
  ///   - undecidable: conditions of stages that cannot be checked.
  ///   - idLimit: IDs to be named of each kind of drift.
  ///   - onEnd: called with the findings, after the last reading.
  init(
    _ records: ObjectVerification, _ entry: VerifyReport.Entry,
    undecidable: [CopyFindings.LeftOut], idLimit: Int,
    onEnd: @escaping (CopyFindings) throws -> Void
  ) {
    self.records = records
    self.entry = entry
    self.undecidable = undecidable
    self.idLimit = idLimit
    self.onEnd = onEnd
  }

  /// When its records were read, if some of them still differ.
  var differedAt: ContinuousClock.Instant? {
    self.differingCount > 0 ? self.records.firstReadAt : nil
  }

  /// Ends the comparison if nothing differs.
  func readFirst() async throws {
    try await self.records.readFirst()
    let findings = try self.records.verification.findings(idLimit: 0)
    self.differingCount =
      findings.differing + findings.missing + findings.extra
      + findings.notFound + findings.outside
    if self.differingCount == 0 { try self.end() }
  }

  func readAgain() async throws {
    try await self.records.readAgain()
    try self.end()
  }

  private func end() throws {
    var findings = try self.records.verification.findings(idLimit: self.idLimit)
    // A record that was lost on the way is not equal.
    findings.total += self.records.recordCount - findings.received
    findings.takeBack(undecidable: self.undecidable)
    self.entry.findings = findings
    try self.onEnd(findings)
  }
}

/// Compares parts side by side.
///
/// All that differ share one wait before they are read again.
struct SideBySide: Sendable {
  /// Parts that are read at a time.
  let limit: Int
  /// After which every reader sees a change.
  let visibilityWait: Duration
  let clock: ProcessClock
  let progress: VerifyProgress

  /// Parts that may wait at a time: each keeps a connection to its database, or files.
  private static let maxWaiting = 10

  /// - Parameter begin: begins the comparison of a part.
  /// - Returns: the findings, in the order of the parts.
  /// - Throws: what `begin`, the org or a sink refuses.
  func compare(
    _ parts: [ComparedPart], _ begin: @escaping @Sendable (ComparedPart) throws -> PartComparison
  ) async throws -> [VerifyReport.Entry] {
    self.progress.begin(partCount: parts.count)
    defer { self.progress.finish() }
    var entries: [VerifyReport.Entry] = []
    while entries.count < parts.count {
      let some = parts[entries.count...].prefix(Self.maxWaiting)
      let comparisons = try await self.each(Array(some)) { part in
        let comparison = try begin(part)
        self.progress.reads(part.object.entity)
        try await comparison.readFirst()
        self.progress.compared(part.object.entity)
        return comparison
      }
      let differing = comparisons.filter { $0.differingCount > 0 }
      try await self.wait(for: differing)
      _ = try await self.each(differing) { try await $0.readAgain() }
      entries += comparisons.map(\.entry)
    }
    return entries
  }

  private func wait(for comparisons: [PartComparison]) async throws {
    guard let last = comparisons.compactMap(\.differedAt).max() else { return }
    let rest = last + self.visibilityWait - self.clock.now
    guard rest > .zero else { return }
    let count = comparisons.reduce(0) { $0 + $1.differingCount }
    let objects = Set(comparisons.map(\.entry.entity)).sorted().joined(separator: ", ")
    self.progress.leave(
      "\(Phrase.count(count, "record")) of \(objects) \(count == 1 ? "differs" : "differ"); reading "
        + "\(count == 1 ? "it" : "them") again in \(Phrase.duration(rest)), because changes of the "
        + "last \(Phrase.duration(self.visibilityWait)) may not be visible to every reader yet")
    try await self.progress.wait(until: self.clock.now + rest)
  }

  /// Runs a step for each input, at most `limit` at a time.
  ///
  /// - Returns: the outputs, in the order of the inputs.
  func each<Input: Sendable, Output: Sendable>(
    _ inputs: [Input], _ step: @escaping @Sendable (Input) async throws -> Output
  ) async throws -> [Output] {
    try await withThrowingTaskGroup(of: (place: Int, output: Output).self) { group in
      var outputs: [Int: Output] = [:]
      for (place, input) in inputs.enumerated() {
        if place >= self.limit, let ended = try await group.next() {
          outputs[ended.place] = ended.output
        }
        group.addTask { (place, try await step(input)) }
      }
      for try await ended in group { outputs[ended.place] = ended.output }
      return inputs.indices.compactMap { outputs[$0] }
    }
  }
}
