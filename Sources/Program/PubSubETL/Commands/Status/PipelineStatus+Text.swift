internal import Bytes
internal import Checkpoint
import Pipeline

extension PipelineStatus {
  /// The verdict, and what it rests on: lines of a label and a value, each ended, for people.
  var text: String { self.verdict + self.details }

  func printable(isColored: Bool, hiding secrets: SecretMask) -> PrintableText {
    let details = PrintableText(lines: self.details, hiding: secrets)
    guard isColored else { return PrintableText(lines: self.verdict, hiding: secrets) + details }
    let color: PrintableText.Color =
      !self.problems.isEmpty ? .red : self.isBehind ? .yellow : .green
    return self.verdict.split(separator: "\n").reduce(.empty) { text, line in
      text + PrintableText(line: String(line), hiding: secrets).colored(color)
    } + details
  }

  private var verdict: String {
    var lines: [(label: String, value: String)] = []
    if self.problems.isEmpty {
      let remarks = self.sinks.compactMap(\.remark) + [self.deadLetters.remark].compactMap { $0 }
      let state = self.isBehind ? self.catchingUp?.text ?? "catching up" : "good"
      lines.append(("health", ([state] + remarks).joined(separator: "; ")))
    }
    for problem in self.problems {
      for (index, line) in Self.lines(
        "\(problem.kind): \(problem.message)", with: problem.statements
      )
      .enumerated() {
        lines.append((index == 0 ? "problem" : "", line))
      }
    }
    return Self.text(lines)
  }

  /// A limit ended the last run before the stream was caught up.
  private var isBehind: Bool { self.lastRun?.isProgress == true }

  private var details: String {
    var lines: [(label: String, value: String)] = [
      ("pipeline", "\(self.pipeline) (\(self.file))"), ("state", self.stateDirectory),
    ]
    lines.append(("running", self.runningText))
    lines += self.incidents.map { ("incident", self.text($0)) }
    lines += self.waiting.map { ("waiting", self.text($0)) }
    if let savedAt = self.savedAt { lines.append(("last commit", self.moment(savedAt))) }
    if let run = self.lastRun {
      lines.append(
        (
          "last run",
          "\(run.startedAt) to \(run.finishedAt): exit \(run.exitCode) (\(run.reason)), "
            + Phrase.count(Int(run.events), "event")
            + (run.schemasFetched.map { ", \(Phrase.count(Int($0), "schema")) fetched" } ?? "")
        ))
      if let replayID = run.managedReplayID {
        lines.append(("", "stored by the managed subscription: replay ID \(replayID)"))
      }
      lines += run.attention.map { ("", "attention: \($0)") }
    }
    for topic in self.topics {
      lines.append(
        ("topic", topic.isUnused ? "\(topic.name), not in the pipeline file" : topic.name))
      lines += self.lines(topic).map { ("", $0) }
    }
    for sink in self.sinks {
      lines.append(("sink", "\(sink.name): \(sink.summary)"))
      lines += sink.lines.map { ("", $0) }
    }
    for (index, line) in self.deadLetters.lines.enumerated() {
      lines.append((index == 0 ? "dead letters" : "", line))
    }
    return Self.text(lines)
  }

  /// A message with each of its statements in a line, so that they can be copied.
  ///
  /// - Parameter statements: SQL that is in the message, joined by `; `.
  static func lines(_ message: String, with statements: [String]) -> [String] {
    guard let sql = message.firstRange(of: statements.joined(separator: "; ")), !sql.isEmpty else {
      return [message]
    }
    let rest = message[sql.upperBound...].drop { "; ".contains($0) }
    return [String(message[..<sql.lowerBound])] + statements.map { "\($0);" }
      + (rest.isEmpty ? [] : [String(rest)])
  }

  static func text(_ lines: [(label: String, value: String)]) -> String {
    lines.map { label, value in
      label + String(repeating: " ", count: max(1, 14 - label.count))
        + PrintableText.withoutLineEnds(value) + "\n"
    }.joined()
  }

  /// Where a topic stands, in a line or two.
  static func lines(_ position: TopicPosition) -> [String] {
    var first = "epoch \(position.epoch), \(Phrase.count(Int(position.nextOrdinal), "event"))"
    if position.holes > 0 {
      let epochs = Phrase.count(position.holes, "epoch")
      first += ", \(epochs) begun because a replay ID could not be used"
    }
    var lines = [first]
    // Usually the last event is where the stream resumes.
    if let last = position.lastEvent, last.replayID != position.resume {
      lines.append("last event \(last.replayID)")
    }
    if let resume = position.resume {
      lines.append(
        "resumes after \(resume)"
          + (position.hasOpenGroup ? ", inside a group of events with one replay ID" : ""))
    } else if let start = position.start {
      lines.append("starts at \(start.rawValue)")
    } else if position.hasOpenGroup {
      lines.append("inside the first group of events with one replay ID")
    } else {
      lines.append("starts where the pipeline file says")
    }
    return lines
  }

  /// `topic /data/X, since …, 3 attempts, next in 9 min 58 s: why`
  private func text(_ wait: RetryLedger.Wait) -> String {
    let left = ProgressLine.age(milliseconds: max(0, wait.nextAttemptAt - self.now))
    return "\(wait.place.text)\(wait.isRefusal ? " is refused" : ""), since "
      + "\(self.moment(wait.since)), \(Phrase.count(wait.attempts, "failed attempt")), next in "
      + "\(left): \(wait.message)"
  }

  /// `failing since … (3 h 12 min ago), 19 times: why`
  private func text(_ incident: Incident) -> String {
    let times = incident.count > 1 ? ", \(Phrase.count(incident.count, "time"))" : ""
    let calls =
      incident.attempts > 0 ? " (\(Phrase.count(incident.attempts, "call")) of notify failed)" : ""
    let over = incident.until.map { ", over since \(self.moment($0))" } ?? ""
    return "\(incident.kind.rawValue) since \(self.moment(incident.since))\(over)\(times)\(calls): "
      + incident.finding.message
  }

  private var runningText: String {
    guard let isHeld = self.lock.isHeld else { return "unknown: /proc/locks cannot be read" }
    guard isHeld else { return "no" }
    return "yes" + (self.lock.processID.map { ", pid \($0)" } ?? "")
  }

  private func lines(_ topic: Topic) -> [String] {
    guard let position = topic.position else { return ["no position stored"] }
    var lines = Self.lines(position)
    if let time = topic.lastCommitTimestamp {
      lines.append("newest commit time in finished files \(time)")
    }
    if let through = position.completeThrough {
      lines.append("complete through \(self.moment(through))")
    }
    if let confirmed = position.confirmedAt {
      let left = confirmed + Self.retention - self.now
      lines.append(
        "confirmed \(self.moment(confirmed)), "
          + (left > 0
            ? "expires in \(ProgressLine.age(milliseconds: left))"
            : "expired \(ProgressLine.age(milliseconds: -left)) ago"))
    }
    return lines
  }

  private func moment(_ milliseconds: Int64) -> String {
    Self.moment(milliseconds, now: self.now)
  }

  /// The time with its age.
  static func moment(_ milliseconds: Int64, now: Int64) -> String {
    "\(UTCTime.timestamp(milliseconds: milliseconds)) "
      + "(\(ProgressLine.age(milliseconds: max(0, now - milliseconds))) ago)"
  }
}
