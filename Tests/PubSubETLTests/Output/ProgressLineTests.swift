import Testing

@testable import PubSubETL

@Suite("Progress line")
struct ProgressLineTests {
  @Test("The summary stays, with singular forms and without zero counts")
  func summary() {
    let now: Int64 = 1_771_300_995_000
    let time = Phrase.localTime(now, now: now)
    func text(
      events: Int64 = 0, read: Int = 0, bytes: Int64? = nil, files: Int = 0,
      newestCommit: Int64? = nil, rows: [(count: Int64, place: String)] = []
    ) -> String {
      var snapshot = ProgressSnapshot()
      snapshot.topics = [.init(name: "/data/A", events: events, newestCommit: newestCommit)]
      snapshot.recordsRead = read
      if let bytes {
        var sink = RunReport.Sink(name: "files", type: "files", target: "/out", bytes: bytes)
        sink.files = files
        snapshot.sinks = [sink]
      }
      return ProgressLine.summary(
        snapshot, rows: rows, duration: .milliseconds(17_200), now: now)
    }
    #expect(
      text(events: 7512, bytes: 1 << 20, files: 2, newestCommit: now)
        == "7,512 events, 2 files, 1.0 MiB in 17 s; newest change \(time)")
    #expect(
      text(
        events: 1, bytes: 99, files: 1, rows: [(2, "in PostgreSQL"), (3, "on standard output")])
        == "1 event, 1 file, 99 B, 2 rows in PostgreSQL, 3 rows on standard output in 17 s")
    #expect(
      text(events: 7512, newestCommit: now, rows: [(9001, "in PostgreSQL")])
        == "7,512 events, 9,001 rows in PostgreSQL in 17 s; newest change \(time)")
    #expect(text(bytes: 0) == "no new events in 17 s")
    #expect(
      text(read: 180_252, rows: [(1975, "in PostgreSQL")])
        == "no new events, 180,252 records read, 1,975 rows changed in PostgreSQL in 17 s")
  }

  @Test(
    "Names are columns: without the kind of topic, and shortened in the middle",
    arguments: [
      (["/data/AChangeEvent", "warehouse"], ["AChangeEvent", "warehouse   "]),
      (
        ["/event/A_Platform_Event_With_A_Very_Long_Name__e", "x"],
        ["A_Platform_Ev…y_Long_Name__e", "x" + String(repeating: " ", count: 27)]
      ), (["表", "xyz"], ["表 ", "xyz"]),
    ])
  func names(_ names: [String], expected: [String]) {
    #expect(ProgressLine.names(names) == expected)
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
