import Testing

@testable import PubSubETL

@Suite("Progress line")
struct ProgressLineTests {
  @Test("The line shows events, rate, newest change, bytes and files within the terminal's width")
  func line() {
    var progress = ProgressLine()
    let wallTime: Int64 = 1_771_300_995_000
    var snapshot = ProgressSnapshot()
    #expect(
      progress.update(snapshot, at: .zero, wallTime: wallTime, columns: 80)
        == "0 events  0/s  0 B  0 files")
    snapshot = ProgressSnapshot(
      events: 12_345, bytes: 3 << 20, files: 1, newestCommit: wallTime - 185_000)
    #expect(
      progress.update(snapshot, at: .milliseconds(199), wallTime: wallTime, columns: 80) == nil)
    #expect(
      progress.update(snapshot, at: .seconds(2), wallTime: wallTime, columns: 80)
        == "12,345 events  6,173/s  newest change 3 min 05 s ago  3.0 MiB  1 file")
    #expect(
      progress.update(snapshot, at: .seconds(3), wallTime: wallTime, columns: 10) == "12,345 ev")
  }

  @Test("During an outage the line shows the cause and the next attempt")
  func failure() {
    var progress = ProgressLine()
    var snapshot = ProgressSnapshot(activity: "logging in at https://acme.my.salesforce.com")
    func line(at seconds: Int, columns: Int = 120) -> String? {
      progress.update(snapshot, at: .seconds(seconds), wallTime: 0, columns: columns)
    }
    #expect(line(at: 0) == "logging in at https://acme.my.salesforce.com …")
    snapshot.failure = ProgressSnapshot.Failure(
      message: "cannot connect to api.example:7443: Connection refused", attempts: 4,
      delay: .milliseconds(7400))
    #expect(
      line(at: 1)
        == "cannot connect to api.example:7443: Connection refused; attempt 4, next in 8 s")
    // What is cut is the message, not the time.
    #expect(
      line(at: 2, columns: 50) == "cannot conne…tion refused; attempt 4, next in 8 s")
    snapshot.failure?.delay = .zero
    #expect(line(at: 3)?.hasSuffix("; attempt 4, trying again") == true)
  }

  @Test("The summary stays, with singular forms and without zero counts")
  func summary() {
    let now: Int64 = 1_771_300_995_000
    let time = Phrase.localTime(now, now: now)
    func text(
      _ snapshot: ProgressSnapshot, rows: [(count: Int64, place: String)] = [],
      hasFiles: Bool = true
    ) -> String {
      ProgressLine.summary(
        snapshot, rows: rows, hasFiles: hasFiles, duration: .milliseconds(17_200), now: now)
    }
    let snapshot = ProgressSnapshot(events: 7512, bytes: 1 << 20, files: 2, newestCommit: now)
    #expect(text(snapshot) == "7,512 events, 2 files, 1.0 MiB in 17 s; newest change \(time)")
    #expect(
      text(
        ProgressSnapshot(events: 1, bytes: 99, files: 1),
        rows: [(2, "in PostgreSQL"), (3, "on standard output")])
        == "1 event, 1 file, 99 B, 2 rows in PostgreSQL, 3 rows on standard output in 17 s")
    #expect(
      text(snapshot, rows: [(9001, "in PostgreSQL")], hasFiles: false)
        == "7,512 events, 9,001 rows in PostgreSQL in 17 s; newest change \(time)")
    #expect(text(ProgressSnapshot()) == "no new events in 17 s")
    #expect(
      text(
        ProgressSnapshot(recordsRead: 1200), rows: [(1200, "in PostgreSQL")], hasFiles: false)
        == "no new events, 1,200 records read, 1,200 rows in PostgreSQL in 17 s")
  }

  @Test(
    "The line shows the wait for records, then how many of all have arrived",
    arguments: [
      (ProgressSnapshot.Records(count: 0, startIn: .seconds(42)), "records will be read in 42 s"),
      (.init(count: 0), "waiting for records"), (.init(count: 1200), "1,200 records read"),
      (.init(count: 1200, total: 9000), "1,200 of 9,000 records"),
      (
        .init(count: 1200, total: 9000, timeLeft: .seconds(61)),
        "1,200 of 9,000 records, 1 min 01 s left"
      ),
    ])
  func records(_ records: ProgressSnapshot.Records, words: String) {
    var progress = ProgressLine()
    let line = progress.update(
      ProgressSnapshot(records: records), at: .zero, wallTime: 0, columns: 80)
    #expect(line == "0 events  0/s  \(words)")
  }

  @Test("The rate covers the last seconds")
  func rate() {
    var progress = ProgressLine()
    for second in 0...20 {
      let events: Int64 = second <= 10 ? Int64(second) * 1000 : 10_000
      let line = progress.update(
        ProgressSnapshot(events: events), at: .seconds(second), wallTime: 0, columns: 80)
      if second == 10 { #expect(line?.hasPrefix("10,000 events  1,000/s") == true) }
      if second == 20 { #expect(line?.hasPrefix("10,000 events  0/s") == true) }
    }
  }

  @Test(
    "Ages are given in a suitable unit",
    arguments: [
      (0, "0 ms"), (999, "999 ms"), (1000, "1 s"), (60_000, "1 min 00 s"),
      (3_600_000, "1 h 00 min"), (93_784_000, "1 d 02 h"),
    ])
  func ages(milliseconds: Int64, text: String) {
    #expect(ProgressLine.age(milliseconds: milliseconds) == text)
  }

  @Test(
    "Sizes are given in a suitable unit",
    arguments: [
      (0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1_048_575, "1023.9 KiB"),
      (134_217_728, "128.0 MiB"), (1 << 40, "1.0 TiB"),
    ])
  func sizes(bytes: Int64, text: String) {
    #expect(ProgressLine.size(bytes) == text)
  }

  @Test(
    "Thousands are grouped",
    arguments: [
      (0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567"),
    ])
  func grouped(number: Int64, text: String) {
    #expect(ProgressLine.grouped(number) == text)
  }
}
