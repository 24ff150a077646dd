/// The progress of a run.
struct ProgressSnapshot: Sendable, Equatable {
  var events: Int64 = 0
  /// Bytes written to sinks, compressed.
  var bytes: Int64 = 0
  /// Files finished.
  var files: Int = 0
  /// Newest commit time seen, in milliseconds since 1970; nil before the first change event.
  var newestCommit: Int64?
  /// Records read over REST and Bulk, beside the events; nil when none are.
  var records: Records?
  /// Records that this run has read.
  var recordsRead = 0
  /// The current wait before anything can arrive.
  var activity: String?
  var failure: Failure?

  /// Totals of all objects whose records are being read.
  struct Records: Sendable, Equatable {
    var count: Int
    /// Nil before it is known of every object.
    var total: Int?
    /// Until the first are asked for; nil when they have been.
    var startIn: Duration?
    /// Until all have been read, at the rate so far; nil before there is one.
    var timeLeft: Duration?
  }

  /// An attempt to reach a service or database that failed and will be repeated.
  struct Failure: Sendable, Equatable {
    var message: String
    /// How many have failed in a row.
    var attempts: Int
    /// Until the next.
    var delay = Duration.zero
  }
}

/// The live line of a run on a terminal: events, rate, age of the newest change, bytes, files; or why
/// nothing comes. A value without clock and output: give it snapshots, show what it returns.
struct ProgressLine {
  /// Shortest time between two drawings.
  static let interval = Duration.milliseconds(200)
  /// The rate is that of the last seconds.
  private static let window = Duration.seconds(5)

  private var samples: [(time: Duration, events: Int64)] = []
  private var lastDrawn: Duration?

  /// The line to show; nil while the last one is too young.
  ///
  /// - Parameters:
  ///   - time: since the run began, by a monotonic clock.
  ///   - wallTime: milliseconds since 1970, for the age of the newest change.
  ///   - columns: width of the terminal; a longer line is cut, since it could not be erased.
  mutating func update(
    _ snapshot: ProgressSnapshot, at time: Duration, wallTime: Int64, columns: Int
  ) -> String? {
    if let last = self.lastDrawn, time - last < Self.interval { return nil }
    self.lastDrawn = time
    self.samples.append((time, snapshot.events))
    while self.samples.count > 2, time - self.samples[1].time >= Self.window {
      self.samples.removeFirst()
    }
    let width = max(0, columns - 1)
    if let failure = snapshot.failure { return Self.text(failure, width: width) }
    if let activity = snapshot.activity { return String("\(activity) …".prefix(width)) }
    var parts = [
      Phrase.count(Int(snapshot.events), "event"), "\(Self.grouped(self.rate))/s",
    ]
    if let newest = snapshot.newestCommit {
      parts.append("newest change \(Self.age(milliseconds: max(0, wallTime - newest))) ago")
    }
    if let records = snapshot.records {
      parts.append(Self.text(records))
    } else if snapshot.recordsRead > 0 {
      parts.append("\(Phrase.count(snapshot.recordsRead, "record")) read")
    } else {
      parts.append(Self.size(snapshot.bytes))
      parts.append(Phrase.count(snapshot.files, "file"))
    }
    return String(parts.joined(separator: "  ").prefix(width))
  }

  /// `12,000 of 200,000 records, 2 min left`
  private static func text(_ records: ProgressSnapshot.Records) -> String {
    if let startIn = records.startIn {
      return "records will be read in \(Phrase.duration(startIn))"
    }
    let count = Self.grouped(Int64(records.count))
    guard let total = records.total else {
      return records.count == 0 ? "waiting for records" : "\(count) records read"
    }
    let left = records.timeLeft.map { ", \(Phrase.duration($0)) left" } ?? ""
    return "\(count) of \(Self.grouped(Int64(total))) records\(left)"
  }

  /// `cannot connect to …: Connection refused; attempt 4, next in 8 s`: of a message that is too long
  /// the beginning, which says what failed, and the end, which says why.
  private static func text(_ failure: ProgressSnapshot.Failure, width: Int) -> String {
    let seconds = (failure.delay + .milliseconds(999)).components.seconds
    let next = seconds > 0 ? "next in \(Phrase.duration(.seconds(seconds)))" : "trying again"
    let end = "; attempt \(failure.attempts), \(next)"
    let room = width - end.count
    guard room > 1, failure.message.count > room else {
      return String((failure.message + end).prefix(width))
    }
    let head = (room - 1) / 2
    return failure.message.prefix(head) + "…" + failure.message.suffix(room - 1 - head) + end
  }

  /// `7,512 events, 2 files, 1.0 MiB in 17 s; newest change 14:03:15`: what stays when a run is over.
  ///
  /// - Parameters:
  ///   - rows: of each kind of place that rows go to, such as `in PostgreSQL`.
  ///   - now: milliseconds since 1970.
  static func summary(
    _ snapshot: ProgressSnapshot, rows: [(count: Int64, place: String)], hasFiles: Bool,
    duration: Duration, now: Int64
  ) -> String {
    var parts = [
      snapshot.events == 0 ? "no new events" : Phrase.count(Int(snapshot.events), "event")
    ]
    if snapshot.recordsRead > 0 {
      parts.append("\(Phrase.count(snapshot.recordsRead, "record")) read")
    }
    if snapshot.events > 0 || snapshot.recordsRead > 0, hasFiles {
      parts += [Phrase.count(snapshot.files, "file"), Self.size(snapshot.bytes)]
    }
    if snapshot.events > 0 || snapshot.recordsRead > 0 {
      parts += rows.map { "\(Phrase.count(Int($0.count), "row")) \($0.place)" }
    }
    var text = "\(parts.joined(separator: ", ")) in \(Phrase.duration(duration))"
    if let newest = snapshot.newestCommit {
      text += "; newest change \(Phrase.localTime(newest, now: now))"
    }
    return text
  }

  private var rate: Int64 {
    guard let first = self.samples.first, let last = self.samples.last,
      last.time > first.time
    else { return 0 }
    let seconds = (last.time - first.time) / .seconds(1)
    return Int64((Double(last.events - first.events) / seconds).rounded())
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
