import TestSupport
import Testing

@testable import Pipeline

@Suite("Commit cycle") struct CommitCycleTests {
  private struct Down: Error {}

  private let now = ContinuousClock.now
  private let keeper = 1

  private func cycle() -> CommitCycle {
    CommitCycle(keeper: self.keeper, .init(maxEvents: 10, maxBytes: 1000, maxDelay: .seconds(1)))
  }

  /// A commit of three stores and one topic.
  private func sealed(_ cycle: inout CommitCycle) {
    cycle.seal(
      at: [[:], [:], [:]], now: self.now, isLast: false, tallies: [RunStatistics.Tally()],
      resumes: [nil])
  }

  private func letter(ordinal: Int64, refusedBy sink: String? = nil) -> DeadLetter {
    DeadLetter(
      topic: "/data/X", replayID: ReplayID([1]), eventID: "e", schemaID: "s", payload: [1, 2, 3],
      reason: "r", refusal: sink.map { DeadLetter.Refusal(sink: $0) }, epoch: 1, ordinal: ordinal)
  }

  private func outage(after delay: Duration) -> StoreOutage {
    StoreOutage(Down(), retryAt: self.now + delay)
  }

  @Test("All stores prepare before the first commits, and the keeper commits first")
  func order() throws {
    for seed in UInt64(0)..<500 {
      var random = SplitMix(seed: seed)
      var cycle = self.cycle()
      self.sealed(&cycle)
      var (prepared, durable) = (Set<Int>(), [Int]())
      var rounds = 0
      while var flight = cycle.inFlight {
        rounds += 1
        flight.retry()
        var isFinished = false
        while let step = flight.next {
          let isUp = rounds > 20 || Int.random(in: 0..<3, using: &random) > 0
          switch step {
          case .prepare(let store):
            #expect(durable.isEmpty && !prepared.contains(store))
            #expect(store != self.keeper || prepared.count == 2)
            if isUp {
              flight.prepared(by: store)
              prepared.insert(store)
            } else {
              #expect(Set(flight.cannotPrepare(self.outage(after: .seconds(1)))) == prepared)
              prepared = []
            }
          case .commit(let store):
            #expect(prepared.count == 3 && !durable.contains(store))
            if isUp {
              flight.committed(by: store)
              durable.append(store)
            } else {
              flight.cannotCommit(store, self.outage(after: .seconds(1)))
            }
          case .finish:
            #expect(Set(durable) == [0, 1, 2])
            isFinished = true
          }
          if isFinished { break }
        }
        #expect(isFinished || flight.outage != nil)
        cycle.inFlight = flight
        if isFinished { #expect(cycle.finish(at: self.now) != nil) }
      }
      #expect(rounds <= 22)
    }
  }

  @Test("A commit waits for the store that answers first")
  func earliestRetry() {
    var cycle = self.cycle()
    self.sealed(&cycle)
    for store in 0..<3 { cycle.inFlight?.prepared(by: store) }
    #expect(cycle.inFlight?.next == .commit(store: self.keeper))
    cycle.inFlight?.committed(by: self.keeper)
    cycle.inFlight?.cannotCommit(0, self.outage(after: .seconds(5)))
    #expect(cycle.inFlight?.next == .commit(store: 2))
    cycle.inFlight?.cannotCommit(2, self.outage(after: .seconds(3)))
    #expect(cycle.inFlight?.next == nil)
    #expect(cycle.inFlight?.isDue(at: self.now + .seconds(2)) == false)
    #expect(cycle.inFlight?.isDue(at: self.now + .seconds(3)) == true)
  }

  @Test("Letters go to the stores that take the event, and the next commit begins without them")
  func letters() {
    var cycle = self.cycle()
    var recipients = StoreSet()
    recipients.insert(2)
    cycle.add(self.letter(ordinal: 7), for: recipients)
    cycle.policy.took(events: 1, at: self.now)
    cycle.isOverweight = true
    #expect(cycle.letterByteCount == 3)
    self.sealed(&cycle)
    #expect(cycle.inFlight?.commits.map(\.letters.count) == [0, 0, 1])
    #expect(cycle.letterByteCount == 0 && cycle.policy.eventCount == 0 && !cycle.isOverweight)
  }

  @Test("An event that two sinks refuse is one letter, with both")
  func refusedTwice() throws {
    var cycle = self.cycle()
    self.sealed(&cycle)
    func refuse(_ ordinal: Int64, by sink: String, missingIn store: Int? = nil) -> Bool? {
      let letter = self.letter(ordinal: ordinal, refusedBy: sink)
      let durable = RefusedPlace(topic: 0, epoch: 1, ordinal: 5)
      return cycle.inFlight?.refuse(letter, of: 0, missingIn: store, after: durable)
    }
    let answers = [refuse(5, by: "a", missingIn: 0), refuse(5, by: "b"), refuse(4, by: "a")]
    // An earlier run has stored the letter of the last one.
    #expect(answers == [true, false, false])
    let flight = try #require(cycle.inFlight)
    #expect(flight.commits[0].letters.map(\.ordinal) == [5])
    #expect(flight.commits[self.keeper].letters.map(\.ordinal) == [5])
    #expect(flight.commits[self.keeper].letters.first?.refusal?.sinks == ["a", "b"])
    #expect(flight.tallies[0].deadLetters == 1 && flight.tallies[0].refused == 1)
  }

  @Test("The first reason ends a run; patience counts from a signal, or from the end if it follows")
  func end() {
    var end = RunEnd()
    #expect(end.patience(follows: true) == nil)
    end.interrupted(at: self.now)
    #expect(end.patience(follows: false) == self.now)
    let decided = [
      end.decide(.eventsReached, at: self.now + .seconds(2)),
      end.decide(.caughtUp, at: self.now + .seconds(3)),
    ]
    #expect(decided == [true, false])
    #expect(end.patience(follows: false) == self.now)
    #expect(end.patience(follows: true) == self.now + .seconds(2))
    var late = RunEnd()
    _ = late.decide(.outOfTime, at: self.now)
    #expect(late.patience(follows: false) == self.now)
  }
}
