import Testing

@testable import Rehearsal

@Suite("Plan of a rehearsal")
struct RehearsalPlanTests {
  private func plan(_ days: Int, seed: UInt64 = 1, hasDatabase: Bool = false) -> RehearsalPlan {
    RehearsalPlan(
      days: days, every: 300_000, seed: seed, eventsPerDay: 100, hasDatabase: hasDatabase)
  }

  @Test("Equal seeds give equal plans")
  func seeds() {
    #expect(self.plan(30) == self.plan(30))
    #expect(self.plan(30) != self.plan(30, seed: 2))
  }

  @Test(
    "Every incident occurs in its order, and the end is healthy", arguments: [1, 2, 7, 30, 365])
  func occurrences(_ days: Int) {
    let plan = self.plan(days, hasDatabase: true)
    let span = Int64(days) * RehearsalPlan.day
    for incident in RehearsalPlan.Incident.allCases {
      #expect(plan.occurrences.contains { $0.incident == incident })
    }
    #expect(plan.occurrences.map(\.start) == plan.occurrences.map(\.start).sorted())
    #expect(plan.occurrences.allSatisfy { $0.start > 0 && $0.end <= span * 95 / 100 })
    #expect(
      !self.plan(days).occurrences.contains { $0.incident == .databaseRestart })
  }

  @Test("Nothing is published in a silence, and one silence exceeds the retention time")
  func silence() {
    let plan = self.plan(30)
    let silences = plan.occurrences.filter { $0.incident == .silence }
    #expect(silences.contains { $0.end - $0.start > 72 * RehearsalPlan.hour })
    for silence in silences {
      #expect(!plan.publications.contains { (silence.start..<silence.end).contains($0.time) })
    }
    let events = plan.publications.reduce(0) { $0 + $1.count }
    #expect((1500...3500).contains(events))
  }
}
