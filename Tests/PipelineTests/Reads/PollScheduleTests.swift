import Testing

@testable import Pipeline

@Suite("Reads of objects without change events") struct PollScheduleTests {
  private let start = ContinuousClock.now
  private let schedule = PollSchedule(every: .seconds(100), fullEvery: .seconds(1000))

  private func time(_ seconds: Int) -> ContinuousClock.Instant { self.start + .seconds(seconds) }

  private func reads(full: Int?, any: Int?) -> PollSchedule.LastReads {
    PollSchedule.LastReads(full: full.map(self.time), any: any.map(self.time))
  }

  // MARK: What is due

  @Test(
    "All records are read first and now and then, and changed ones in between",
    arguments: [
      ([(nil, nil)], 0, "all"),
      ([(0, 0)], 99, "wait 100"),
      ([(0, 0)], 100, "changes 0"),
      ([(0, 300)], 399, "wait 400"),
      ([(0, 300)], 400, "changes 300"),
      ([(0, 950)], 1049, "wait 1050"),
      ([(0, 950)], 1050, "all"),
      // The store that is furthest behind decides.
      ([(0, 300), (0, 200)], 300, "changes 200"),
      ([(0, 300), (nil, nil)], 300, "all"),
      ([(0, 300), (nil, 300)], 300, "all"),
    ] as [([(Int?, Int?)], Int, String)])
  func due(reads: [(Int?, Int?)], now: Int, expected: String) {
    let next = self.schedule.next(
      after: reads.map { self.reads(full: $0.0, any: $0.1) }, at: self.time(now))
    #expect(self.text(next) == expected)
  }

  @Test("Other fields make a read of all records due at once")
  func otherFields() {
    var schedule = self.schedule
    schedule.fullSince = self.time(50)
    #expect(schedule.next(after: [self.reads(full: 49, any: 60)], at: self.time(61)) == .all)
    #expect(
      schedule.next(after: [self.reads(full: 50, any: 60)], at: self.time(61))
        == .wait(until: self.time(160)))
  }

  private func text(_ next: PollSchedule.Next) -> String {
    func seconds(_ instant: ContinuousClock.Instant) -> Int64 {
      (instant - self.start).components.seconds
    }
    return switch next {
    case .all: "all"
    case .wait(let until): "wait \(seconds(until))"
    case .changes(let since): "changes \(seconds(since))"
    }
  }

  // MARK: Passes

  private func object() -> ReadObject {
    var object = ReadObject(
      entity: "A", topic: "/data/AChangeEvent",
      layout: RecordLayout.of([Column("Name", 0)], slotCount: 1))
    object.poll = self.schedule
    return object
  }

  private func moment(_ seconds: Int, commits: Int = 0) -> ReadRun.Moment {
    ReadRun.Moment(
      now: self.time(seconds), commits: commits, isCommitting: false,
      visibilityWait: .seconds(10))
  }

  private func pass(_ number: Int, _ state: ReadPass.State, isOfChanges: Bool = false) -> ReadPass {
    ReadPass(
      entity: "A", part: isOfChanges ? ReadPass.changes : nil, number: number, state: state)
  }

  private func candidate(
    _ store: Int, all: ReadPass?, changes: ReadPass? = nil, _ reads: PollSchedule.LastReads
  ) -> ReadRun.Candidate {
    ReadRun.Candidate(
      store: store, pass: all, lastNumber: max(all?.number ?? 0, changes?.number ?? 0),
      isAnew: false, changes: changes, lastReads: reads)
  }

  private func planned(
    _ candidates: [ReadRun.Candidate], at seconds: Int, isRepeated: Bool = false
  ) -> (run: ReadRun, step: ReadRun.Step?) {
    var run = ReadRun(self.object(), topic: nil, isRepeated: isRepeated)
    let step = run.plan(candidates, limit: .seconds(500), self.moment(seconds))
    return (run, step)
  }

  @Test("The first pass waits for no stream, and one run reads once")
  func first() {
    var (run, step) = self.planned([self.candidate(0, all: nil, .init())], at: 0)
    #expect(step == nil && run.phase == .unbegun && run.pass == self.pass(1, .begun))
    #expect(run.advance(self.moment(1), mayBegin: true) == .store)
    #expect(run.advance(self.moment(2, commits: 1), mayBegin: true) == .read)
    run.readAll(self.moment(3, commits: 1))
    #expect(run.advance(self.moment(4, commits: 2), mayBegin: true) == .end)
    run.end(nil, at: self.time(4))
    #expect(run.phase == .ended && run.deadline == nil)
  }

  @Test("A run that goes on reads again, counted from the beginning of the read before")
  func again() {
    var (run, _) = self.planned([self.candidate(0, all: nil, .init())], at: 0, isRepeated: true)
    #expect(run.advance(self.moment(7), mayBegin: true) == .store)
    run.end(nil, at: self.time(50))
    #expect(run.hasEnded && run.deadline == self.time(107))
    #expect(run.advance(self.moment(106), mayBegin: true) == nil)
    #expect(run.advance(self.moment(107), mayBegin: true) == .plan && !run.hasEnded)
    let failure = SourceFailure(.unavailable, reason: "r", "gone")
    run.end(failure, at: self.time(120))
    #expect(run.failure != nil && run.deadline == self.time(220))
  }

  @Test("A pass over changes has a number that no pass of the object had, and its start")
  func changes() {
    let last = self.candidate(
      0, all: self.pass(3, .complete), changes: self.pass(5, .complete, isOfChanges: true),
      self.reads(full: 0, any: 200))
    let (run, step) = self.planned([last], at: 300)
    #expect(step == nil && run.pass.number == 6 && run.pass.isOfChanges)
    #expect(run.pass.since == self.time(200) && run.pass.key == "A changes")
    let (early, _) = self.planned([last], at: 299)
    #expect(early.phase == .ended)
    let (waiting, _) = self.planned([last], at: 299, isRepeated: true)
    #expect(waiting.phase == .idle(until: self.time(300)))
  }

  @Test("An interrupted pass over changes continues, for the stores that lack it")
  func interrupted() {
    let reads = self.reads(full: 0, any: 100)
    let done = self.candidate(
      0, all: self.pass(3, .complete), changes: self.pass(5, .complete, isOfChanges: true),
      self.reads(full: 0, any: 210))
    let behind = self.candidate(
      1, all: self.pass(3, .complete), changes: self.pass(5, .reading, isOfChanges: true), reads)
    let (run, step) = self.planned([done, behind], at: 220)
    #expect(step == .read && run.recipients == [1] && run.pass.number == 5)
    #expect(run.pass.since == self.time(100))
    // Nothing says since when changes are missing, so all records are read.
    let lost = self.candidate(
      1, all: nil, changes: self.pass(5, .reading, isOfChanges: true), .init())
    let (anew, _) = self.planned([done, lost], at: 220)
    #expect(anew.phase == .unbegun && !anew.pass.isOfChanges && anew.pass.number == 6)
    #expect(anew.recipients == [0, 1])
  }

  @Test("A pass that is too old is begun again at once")
  func old() {
    var pass = self.pass(5, .reading, isOfChanges: true)
    pass.begunAt = self.time(0)
    let last = self.candidate(
      0, all: self.pass(3, .complete), changes: pass, self.reads(full: 0, any: 550))
    let (run, step) = self.planned([last], at: 600)
    #expect(step == nil && run.phase == .unbegun && run.pass.number == 6)
  }

  @Test("Without a store that takes records, nothing is read")
  func none() {
    #expect(self.planned([], at: 0).run.phase == .ended)
  }
}
