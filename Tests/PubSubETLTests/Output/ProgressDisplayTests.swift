import Testing

@testable import PubSubETL

@Suite("Progress display")
struct ProgressDisplayTests {
  private let wallTime: Int64 = 1_771_300_995_000

  private func sink(_ name: String) -> RunReport.Sink {
    var sink = RunReport.Sink(name: name, type: "files", target: "/out", rows: 12_430)
    sink.bytes = 2 << 20
    sink.files = 2
    sink.unfinished = RunReport.Sink.Unfinished(files: 1, bytes: 1 << 20)
    return sink
  }

  @Test(
    "Each topic and each sink has a line, of which what does not fit is left out",
    arguments: [
      (
        120,
        [
          "OpportunityChangeEvent  12,345 events  6,173/s  newest change 3 min 05 s ago",
          "AccountChangeEvent      85 events  waiting for silence: 9 s of 15",
          "archive                 12,430 rows  3.0 MiB  2 files, 1 in progress",
          "warehouse               12,430 rows  180,252 read, 1,975 changed",
        ]
      ),
      (
        60,
        [
          "OpportunityChangeEvent  12,345 events  6,173/s",
          "AccountChangeEvent      85 events",
          "archive                 12,430 rows  3.0 MiB",
          "warehouse               12,430 rows",
        ]
      ),
      (
        20,
        [
          "OpportunityChangeEv", "AccountChangeEvent ", "archive            ",
          "warehouse          ",
        ]
      ),
    ])
  func lines(columns: Int, expected: [String]) {
    var display = ProgressDisplay()
    var warehouse = RunReport.Sink(name: "warehouse", type: "postgres", target: "x", rows: 12_430)
    warehouse.rowsRead = 180_252
    warehouse.rowsChanged = 1975
    warehouse.counted = .rows(place: "in PostgreSQL")
    var snapshot = ProgressSnapshot(
      topics: [
        .init(name: "/data/OpportunityChangeEvent"),
        .init(
          name: "/data/AccountChangeEvent", events: 85,
          state: .silent(.milliseconds(9900), needed: .seconds(15))),
      ], sinks: [self.sink("archive"), warehouse])
    let size = (columns: columns, rows: 24)
    #expect(display.isDue(at: .zero))
    _ = display.lines(snapshot, at: .zero, wallTime: self.wallTime, size: size)
    #expect(!display.isDue(at: .milliseconds(199)))
    #expect(display.isDue(at: .milliseconds(200)))
    snapshot.topics[0].events = 12_345
    snapshot.topics[0].newestCommit = self.wallTime - 185_000
    let lines = display.lines(snapshot, at: .seconds(2), wallTime: self.wallTime, size: size)
    #expect(lines == expected)
    #expect(lines.allSatisfy { $0.count < columns })
  }

  @Test("A terminal with few lines shows the first topics, and the others as one line")
  func fewLines() {
    var display = ProgressDisplay()
    let snapshot = ProgressSnapshot(
      topics: (1...40).map { .init(name: "/event/Topic\($0)__e", events: 10) },
      sinks: [self.sink("archive")], records: .init(count: 0))
    for rows in 1...60 {
      let lines = display.lines(snapshot, at: .zero, wallTime: 0, size: (80, rows))
      #expect(lines.count <= max(1, rows - 1))
    }
    let lines = display.lines(snapshot, at: .zero, wallTime: 0, size: (80, 6))
    #expect(
      lines.map { $0.prefix(22) } == [
        "Topic1__e  10 events  ", "Topic2__e  10 events  ", "and 38 more topics: 38",
        "archive    12,430 rows",
        "waiting for records",
      ])
  }

  @Test("During an outage the cause and the next attempt are shown")
  func failure() {
    var display = ProgressDisplay()
    var snapshot = ProgressSnapshot(activity: "logging in at https://acme.my.salesforce.com")
    func lines(columns: Int = 120) -> [String] {
      display.lines(snapshot, at: .zero, wallTime: 0, size: (columns, 24))
    }
    #expect(lines() == ["logging in at https://acme.my.salesforce.com …"])
    snapshot.failure = ProgressSnapshot.Failure(
      message: "cannot connect to api.example:7443: Connection refused", attempts: 4,
      delay: .milliseconds(7400))
    #expect(
      lines() == [
        "cannot connect to api.example:7443: Connection refused; attempt 4, next in 8 s"
      ])
    // What is cut is the message, not the time.
    #expect(
      lines(columns: 50) == ["cannot conne…tion refused; attempt 4, next in 8 s"])
    snapshot.failure?.delay = .zero
    #expect(lines()[0].hasSuffix("; attempt 4, trying again"))
    snapshot.activity = nil
    snapshot.topics = [.init(name: "/data/AccountChangeEvent", events: 1)]
    #expect(lines().count == 2)
    #expect(lines()[0] == "AccountChangeEvent  1 event  0/s")
  }

  @Test(
    "The last line shows the wait for records, then how many of all have arrived",
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
    var display = ProgressDisplay()
    let lines = display.lines(
      ProgressSnapshot(records: records), at: .zero, wallTime: 0, size: (80, 24))
    #expect(lines == [words])
  }

  @Test("The rate covers the last seconds")
  func rate() {
    var pace = ProgressPace()
    for second in 0...20 {
      pace.note(
        events: second <= 10 ? Int64(second) * 1000 : 10_000, newestCommit: nil,
        at: .seconds(second))
      if second == 10 { #expect(pace.rate == 1000) }
      if second == 20 { #expect(pace.rate == 0) }
    }
  }

  @Test(
    "The time left is the backlog at the speed at which it shrinks",
    arguments: [
      // Changes of 11 s a second: the backlog shrinks by 10 s a second.
      (11_000, Duration.seconds(61)), (2000, .seconds(601)), (1000, nil), (500, nil),
    ])
  func timeLeft(milliseconds: Int, expected: Duration?) {
    var pace = ProgressPace()
    for second in 0...40 {
      pace.note(
        events: 0, newestCommit: self.wallTime + Int64(second * milliseconds), at: .seconds(second))
    }
    #expect(pace.timeLeft(behind: .seconds(600)) == expected)
  }
}
