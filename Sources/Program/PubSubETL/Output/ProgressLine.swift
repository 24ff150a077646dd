/// How progress is written: a line each for topics, sinks, records and failures, and numbers as people
/// read them.
enum ProgressLine {
  /// The most columns of a name.
  private static let longestName = 28
  /// A topic that is less far behind is up to date.
  private static let backlog = Duration.seconds(60)

  /// `OpportunityChangeEvent  12,345 events  1,203/s  about 2 min left  newest change 3 min 05 s ago`
  ///
  /// - Parameters:
  ///   - wallTime: milliseconds since 1970, for the age of the newest change.
  ///   - width: the most columns of the line; what does not fit is left out.
  static func text(
    _ topic: ProgressSnapshot.Topic, _ pace: ProgressPace, wallTime: Int64, name: String,
    width: Int
  ) -> String {
    var parts = [Phrase.count(Int(topic.events), "event")]
    switch topic.state {
    case .reading: parts.append("\(Self.grouped(pace.rate))/s")
    case .silent(let elapsed, let needed):
      parts.append(
        "waiting for silence: \(elapsed.components.seconds) s of \(needed.components.seconds)")
    case .awaitingKeepalive: parts.append("waiting for a keepalive")
    case .caughtUp: parts.append("caught up")
    case .refused: parts.append("refused")
    }
    if let newest = topic.newestCommit {
      let lag = Duration.milliseconds(max(0, wallTime - newest))
      if topic.state == .reading, lag >= Self.backlog, let left = pace.timeLeft(behind: lag) {
        parts.append("about \(Phrase.duration(left)) left")
      }
      parts.append("newest change \(Phrase.duration(lag)) ago")
    }
    return Self.line(name, parts, width: width)
  }

  /// `archive  12,345 rows  3.0 MiB  2 files, 1 in progress`,
  /// `warehouse  1,203 rows  180,252 read, 1,975 changed`
  static func text(_ sink: RunReport.Sink, name: String, width: Int) -> String {
    var parts = [Phrase.count(Int(sink.rows), "row")]
    if sink.rowsRead > 0 {
      let read = "\(Self.grouped(sink.rowsRead)) read"
      if case .rows = sink.counted {
        parts.append("\(read), \(Self.grouped(sink.rowsChanged)) changed")
      } else {
        parts.append(read)
      }
    }
    if sink.counted == .files {
      parts.append(Self.size(sink.bytes + sink.unfinished.bytes))
      var files = Phrase.count(sink.files, "file")
      if sink.unfinished.files > 0 { files += ", \(sink.unfinished.files) in progress" }
      parts.append(files)
    }
    return Self.line(name, parts, width: width)
  }

  /// `and 12 more topics: 3,456 events`
  static func text(others topics: some Collection<ProgressSnapshot.Topic>, width: Int) -> String {
    let events = topics.reduce(0) { $0 + $1.events }
    return Self.fitted(
      "and \(Phrase.count(topics.count, "more topic")): \(Phrase.count(Int(events), "event"))",
      width: width)
  }

  /// `12,000 of 200,000 records, 2 min left`
  static func text(_ records: ProgressSnapshot.Records, width: Int) -> String {
    if let startIn = records.startIn {
      return Self.fitted("records will be read in \(Phrase.duration(startIn))", width: width)
    }
    let count = Self.grouped(Int64(records.count))
    guard let total = records.total else {
      return Self.fitted(
        records.count == 0 ? "waiting for records" : "\(count) records read", width: width)
    }
    let left = records.timeLeft.map { ", \(Phrase.duration($0)) left" } ?? ""
    return Self.fitted(
      "\(count) of \(Self.grouped(Int64(total))) records\(left)", width: width)
  }

  /// `cannot connect to …: Connection refused; attempt 4, next in 8 s`: of a message that is too long
  /// the beginning, which says what failed, and the end, which says why.
  static func text(_ failure: ProgressSnapshot.Failure, width: Int) -> String {
    let seconds = (failure.delay + .milliseconds(999)).components.seconds
    let next = seconds > 0 ? "next in \(Phrase.duration(.seconds(seconds)))" : "trying again"
    let end = "; attempt \(failure.attempts), \(next)"
    let room = width - end.count
    guard room > 1 else { return Self.fitted(failure.message + end, width: width) }
    return Self.shortened(failure.message, width: room) + end
  }

  /// Names as columns: what comes after the last slash, of equal width.
  static func names(_ names: [String]) -> [String] {
    let short = names.map { name in
      Self.shortened(
        String(name[(name.lastIndex(of: "/").map(name.index(after:)) ?? name.startIndex)...]),
        width: Self.longestName)
    }
    let width = short.map(TerminalColumns.width).max() ?? 0
    return short.map { $0 + String(repeating: " ", count: width - TerminalColumns.width($0)) }
  }

  /// The name and as many of the parts, the most important ones first, as there is room for.
  private static func line(_ name: String, _ parts: [String], width: Int) -> String {
    var line = name
    for part in parts {
      let longer = line.isEmpty ? part : "\(line)  \(part)"
      guard TerminalColumns.width(longer) <= width else { break }
      line = longer
    }
    return Self.fitted(line, width: width)
  }

  static func fitted(_ text: String, width: Int) -> String {
    TerminalColumns.prefix(text, width: width)
  }

  /// The beginning and the end of a text that is too long.
  private static func shortened(_ text: String, width: Int) -> String {
    guard TerminalColumns.width(text) > width else { return text }
    let head = (width - 1) / 2
    return TerminalColumns.prefix(text, width: head) + "…"
      + TerminalColumns.suffix(text, width: width - 1 - head)
  }

  /// `7,512 events, 2 files, 1.0 MiB in 17 s; newest change 14:03:15`: what stays when a run is over.
  ///
  /// - Parameters:
  ///   - rows: of each kind of place that rows go to, such as `in PostgreSQL`.
  ///   - now: milliseconds since 1970.
  static func summary(
    _ snapshot: ProgressSnapshot, rows: [(count: Int64, place: String)], duration: Duration,
    now: Int64
  ) -> String {
    var parts = [
      snapshot.events == 0 ? "no new events" : Phrase.count(Int(snapshot.events), "event")
    ]
    if snapshot.recordsRead > 0 {
      parts.append("\(Phrase.count(snapshot.recordsRead, "record")) read")
    }
    let files = snapshot.sinks.filter { $0.counted == .files }
    if snapshot.events > 0 || snapshot.recordsRead > 0 {
      if !files.isEmpty {
        parts.append(Phrase.count(files.reduce(0) { $0 + $1.files }, "file"))
        parts.append(Self.size(files.reduce(0) { $0 + $1.bytes }))
      }
      // What reads become is seldom what was read: most rows had the same values before.
      let changed = snapshot.recordsRead > 0 ? "changed " : ""
      parts += rows.map { "\(Phrase.count(Int($0.count), "row")) \(changed)\($0.place)" }
    }
    var text = "\(parts.joined(separator: ", ")) in \(Phrase.duration(duration))"
    if let newest = snapshot.newestCommit {
      text += "; newest change \(Phrase.localTime(newest, now: now))"
    }
    return text
  }

  /// `1,234,567`; of a number that is not negative.
  static func grouped(_ number: Int64) -> String {
    let digits = String(number)
    var result = ""
    for (index, digit) in digits.enumerated() {
      if index > 0, (digits.count - index) % 3 == 0 { result += "," }
      result.append(digit)
    }
    return result
  }

  /// Two units at most: `350 ms`, `12 s`, `3 min 05 s`, `2 h 04 min`, `3 d 07 h`.
  static func age(milliseconds: Int64) -> String {
    func padded(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
    let seconds = milliseconds / 1000
    switch seconds {
    case 0: return "\(milliseconds) ms"
    case ..<60: return "\(seconds) s"
    case ..<3600: return "\(seconds / 60) min \(padded(seconds % 60)) s"
    case ..<86_400: return "\(seconds / 3600) h \(padded(seconds / 60 % 60)) min"
    default: return "\(seconds / 86_400) d \(padded(seconds / 3600 % 24)) h"
    }
  }

  /// `17 B`, `12.3 MiB`.
  static func size(_ bytes: Int64) -> String {
    guard bytes >= 1024 else { return "\(bytes) B" }
    var tenths = bytes * 10 / 1024
    for unit in ["KiB", "MiB", "GiB"] {
      if tenths < 10_240 { return "\(tenths / 10).\(tenths % 10) \(unit)" }
      tenths /= 1024
    }
    return "\(tenths / 10).\(tenths % 10) TiB"
  }
}
