import JSON
import TestSupport
import Testing

@testable import PubSubETL

/// A crontab of a month, by a clock of its own: a run every ten minutes, outages, a receiver of notices that
/// fails now and then, and runs that are killed around their calls.
@Suite("A month of incidents") struct MonthOfIncidentsTests {
  private static let minute: Int64 = 60_000

  /// What a receiver gets.
  private struct Receiver {
    /// The beginnings of incidents in their order, once each.
    var begun: [Int64] = []
    var ended: [Int64] = []
    /// Those that have begun and not ended.
    var open: Set<Int64> = []
    var calls = 0
  }

  private struct Month {
    var random: SplitMix
    var book = IncidentBook()
    /// What is on the disk.
    var disk = IncidentBook().json.text()
    var receiver = Receiver()
    /// The beginnings of outages, as runs saw them.
    var outages: [Int64] = []
    var shown = 0
    var reminders = 0
    let receiverFails: Int
    let kills: Int

    mutating func run(fails: Bool, at now: Int64) throws {
      let json = try JSONValue(parsing: Array(self.disk.utf8))
      self.book = try #require(IncidentBook(json: json))
      if fails {
        let finding = Incident.Finding(message: "m", reason: "unavailable", exitCode: 69)
        switch self.book.saw(.failing, finding, at: now) {
        case .show: self.shown += 1
        case .remind: self.reminders += 1
        case .beSilent: break
        }
      } else {
        _ = self.book.sawOver(.failing, at: now)
      }
      self.disk = self.book.json.text()
      while let event = self.book.due {
        let incident = self.book.calls(event)
        self.disk = self.book.json.text()
        // Killed between state and call, or between call and state.
        if self.happens(self.kills) { return }
        if self.happens(self.receiverFails) { return }
        self.receiver.calls += 1
        switch event {
        case .begin:
          // A repeated call says so.
          #expect(!self.receiver.begun.contains(incident.since) || incident.attempts > 1)
          if !self.receiver.begun.contains(incident.since) {
            self.receiver.begun.append(incident.since)
          }
          self.receiver.open.insert(incident.since)
        case .end:
          if !self.receiver.ended.contains(incident.since) {
            self.receiver.ended.append(incident.since)
          }
          self.receiver.open.remove(incident.since)
        }
        if self.happens(self.kills) { return }
        self.book.called(event)
        self.disk = self.book.json.text()
      }
      // Whoever was told everything knows how it is.
      #expect(self.receiver.open.count == (fails ? 1 : 0))
    }

    private mutating func happens(_ percent: Int) -> Bool {
      Int.random(in: 0..<100, using: &self.random) < percent
    }
  }

  private func month(seed: UInt64, receiverFails: Int, kills: Int) throws -> Month {
    var month = Month(
      random: SplitMix(seed: seed), receiverFails: receiverFails, kills: kills)
    var isOut = false
    // Outages of ten minutes to three days, with at least two hours between them.
    var change: Int64 = 300 * Self.minute
    let end = 30 * 1440 * Self.minute
    for now in stride(from: 0, to: end + 1440 * Self.minute, by: 10 * Int(Self.minute)) {
      let now = Int64(now)
      if now >= change || now >= end && isOut {
        isOut.toggle()
        if isOut { month.outages.append(now) }
        change =
          now
          + Self.minute
          * (isOut
            ? Int64.random(in: 10...4320, using: &month.random)
            : Int64.random(in: 120...2880, using: &month.random))
        if now >= end { change = .max }
      }
      try month.run(fails: isOut, at: now)
    }
    return month
  }

  @Test(
    "Each outage has exactly one call for its beginning and one for its end",
    arguments: [1, 2, 3, 4, 5, 6, 7, 8] as [UInt64])
  func exactlyOnce(seed: UInt64) throws {
    let month = try self.month(seed: seed, receiverFails: 0, kills: 0)
    #expect(month.outages.count >= 5)
    #expect(month.receiver.begun == month.outages)
    #expect(month.receiver.ended == month.outages)
    #expect(month.receiver.calls == 2 * month.outages.count)
    #expect(month.shown == month.outages.count)
    // At most one a day, and fewer than there are days.
    #expect(month.reminders < 30)
    #expect(month.disk == IncidentBook().json.text())
  }

  @Test(
    "With a receiver that fails and runs that are killed nothing is lost, and repeated calls say so",
    arguments: [11, 12, 13, 14, 15, 16, 17, 18] as [UInt64])
  func atLeastOnce(seed: UInt64) throws {
    let month = try self.month(seed: seed, receiverFails: 40, kills: 20)
    // Outages with two hours between them are twelve runs apart, which is enough for a call to succeed
    // in nearly every case; where it is not, two outages are one incident.
    #expect(Set(month.receiver.begun).isSubset(of: month.outages))
    #expect(month.receiver.begun.count >= month.outages.count / 2)
    #expect(month.receiver.begun == month.receiver.ended)
    #expect(month.receiver.open == [])
    #expect(month.disk == IncidentBook().json.text())
  }
}
