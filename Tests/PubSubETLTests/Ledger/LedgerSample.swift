import Pipeline
import TestSupport

@testable import PubSubETL

/// Random entries of a ledger, the same for the same seed.
struct LedgerSample {
  private var random: SplitMix

  init(seed: UInt64) { self.random = SplitMix(seed: seed) }

  /// Texts that would break a format that did not expect them.
  static let hostileTexts = [
    "", "\"", "\\", "\n{\"kind\":\"run\"}\n", "\u{0}\u{1B}[2J", "\u{202E}txt", "</script><b>",
    "\u{FEFF}", "é\u{301}\u{1F1E6}", "null", "\u{2028}", "&lt;", "' onload='x",
  ]

  mutating func text(longest: Int = RunRecord.maxNameLength) -> String {
    var text = ""
    for _ in 0..<Int.random(in: 0...3, using: &self.random) {
      text += Self.hostileTexts.randomElement(using: &self.random) ?? ""
      text += String(
        repeating: ["a", "\u{1}", "\u{10FFFF}", " "].randomElement(using: &self.random) ?? "",
        count: Int.random(in: 0...300, using: &self.random))
    }
    return text.cut(to: longest)
  }

  mutating func count() -> Int64 {
    let limits: [Int64] = [1, 1000, RunRecord.Counts.maxCount]
    let limit = limits.randomElement(using: &self.random) ?? 1
    return .random(in: 0...limit, using: &self.random)
  }

  private mutating func time() -> Int64 { .random(in: CommitTime.range, using: &self.random) }

  private mutating func maybe<Value>(_ value: (inout Self) -> Value) -> Value? {
    Bool.random(using: &self.random) ? value(&self) : nil
  }

  private mutating func list<Element>(
    upTo limit: Int, _ element: (inout Self) -> Element
  ) -> [Element] {
    (0..<Int.random(in: 0...limit, using: &self.random)).map { _ in element(&self) }
  }

  private mutating func place() -> StreamPlace {
    StreamPlace(
      epoch: .random(in: 0...Int(Int32.max), using: &self.random),
      ordinal: .random(in: 0...Int64.max, using: &self.random))
  }

  mutating func beginning() -> RunBeginning {
    RunBeginning(
      id: RunID(self.random.next()), version: self.text(),
      command: Bool.random(using: &self.random) ? .run : .snapshot,
      processID: .random(in: 1...Int32.max, using: &self.random), beganAt: self.time())
  }

  mutating func run() -> RunRecord {
    var record = RunRecord(
      beginning: self.beginning(), endedAt: self.time(),
      exitCode: .random(in: 0...255, using: &self.random), reason: self.text(),
      message: self.maybe { $0.text(longest: RunRecord.maxMessageLength) })
    for (_, path) in RunRecord.Counts.members { record.counts[keyPath: path] = self.count() }
    record.allowance = self.maybe { sample in
      OrgAllowance(
        max: sample.count(), remaining: sample.count() * (sample.random.next() % 2 == 0 ? 1 : -1))
    }
    record.retries = self.list(upTo: RunRecord.maxRetryCount) {
      RunRecord.Retry(place: $0.text(), code: $0.text(), count: $0.count())
    }
    record.topics = self.list(upTo: RunRecord.maxTopicCount) { sample in
      RunRecord.Topic(
        name: sample.text(), events: sample.count(), rows: sample.count(),
        begin: sample.maybe { $0.place() }, end: sample.maybe { $0.place() },
        lag: sample.maybe { $0.count() }, completeThrough: sample.maybe { $0.time() })
    }
    record.otherTopics = self.count()
    record.sinks = self.list(upTo: RunRecord.maxSinkCount) {
      RunRecord.Sink(
        name: $0.text(), type: $0.text(), target: $0.text(), rows: $0.count(),
        rowsRead: $0.count(), bytes: $0.count(), files: $0.count())
    }
    return record
  }

  mutating func verify() -> VerifyRecord {
    VerifyRecord(
      version: self.text(), beganAt: self.time(), endedAt: self.time(), verdict: self.text(),
      compares: self.text(),
      tables: self.list(upTo: VerifyRecord.maxTableCount) {
        VerifyRecord.Table(
          sink: $0.text(), object: $0.text(), verdict: $0.text(), total: $0.count(),
          drift: $0.count())
      })
  }

  mutating func entry() -> LedgerEntry {
    switch self.random.next() % 3 {
    case 0: .began(self.beginning())
    case 1: .run(self.run())
    default: .verify(self.verify())
    }
  }
}
