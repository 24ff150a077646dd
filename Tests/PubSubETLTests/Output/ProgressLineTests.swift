import Testing

@testable import PubSubETL

@Suite("Progress line")
struct ProgressLineTests {
  @Test("The line shows events, rate, lag, bytes and files, and is cut to the terminal")
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
        == "12,345 events  6,173/s  lag 3 min 05 s  3.0 MiB  1 file")
    #expect(
      progress.update(snapshot, at: .seconds(3), wallTime: wallTime, columns: 10) == "12,345 ev")
  }

  @Test("The rate is that of the last seconds")
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
    "Ages",
    arguments: [
      (0, "0 ms"), (999, "999 ms"), (1000, "1 s"), (60_000, "1 min 00 s"),
      (3_600_000, "1 h 00 min"), (93_784_000, "1 d 02 h"),
    ])
  func ages(milliseconds: Int64, text: String) {
    #expect(ProgressLine.age(milliseconds: milliseconds) == text)
  }

  @Test(
    "Sizes",
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
