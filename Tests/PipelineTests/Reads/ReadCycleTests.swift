import Testing

@testable import Pipeline

@Suite("Read cycle") struct ReadCycleTests {
  private let start = ContinuousClock.now
  private let layout = RecordLayout.of([Column("Name", 0)], slotCount: 1)

  private func object(
    condition: String? = nil, topic: String = "/data/A", isRepaired: Bool = false
  ) -> ReadObject {
    ReadObject(
      entity: "A", topic: topic, layout: self.layout, condition: condition, isRepaired: isRepaired)
  }

  private func cycle(_ objects: [ReadObject], follows: Bool = false) -> ReadCycle {
    ReadCycle(
      objects, topics: ["/data/A", "/data/B"], repairing: [1, 2], follows: follows, at: self.start)
  }

  /// A time in seconds after the start.
  private func moment(
    _ seconds: Int, commits: Int = 0, isCommitting: Bool = false
  ) -> ReadRun.Moment {
    ReadRun.Moment(
      now: self.start + .seconds(seconds), commits: commits, isCommitting: isCommitting,
      visibilityWait: .seconds(10))
  }

  private func candidate(
    _ store: Int, _ pass: ReadPass? = nil, isAnew: Bool = false
  ) -> ReadRun.Candidate {
    ReadRun.Candidate(store: store, pass: pass, lastNumber: pass?.number ?? 0, isAnew: isAnew)
  }

  private func pass(_ number: Int, _ state: ReadPass.State, rows: Int = 0) -> ReadPass {
    var pass = ReadPass(entity: "A", number: number, state: state)
    pass.rowCount = rows
    pass.job = rows > 0 ? "j" : nil
    return pass
  }

  /// A pass that was planned for some stores, and its next step.
  private func planned(
    _ object: ReadObject, _ candidates: [ReadRun.Candidate], limit: Duration = .seconds(3600)
  ) -> (run: ReadRun, step: ReadRun.Step?) {
    var run = ReadRun(object, topic: 0)
    let step = run.plan(candidates, limit: limit, self.moment(100))
    return (run, step)
  }

  @Test("A pass is read once it and the positions are durable and visible, and ends once durable")
  func steps() {
    var run = ReadRun(self.object(), topic: 0)
    func next(_ moment: ReadRun.Moment, hasPosition: Bool = true) -> ReadRun.Step? {
      run.advance(moment, mayBegin: hasPosition)
    }
    #expect(next(self.moment(0, isCommitting: true)) == nil)
    #expect(next(self.moment(0)) == .plan)
    let planned = run.plan([self.candidate(0)], limit: .zero, self.moment(0))
    #expect(planned == nil && run.recipients == [0] && run.pass.number == 1)
    #expect(next(self.moment(1, commits: 5, isCommitting: true), hasPosition: false) == nil)
    // The pass is part of the open commit, which follows the one in flight.
    #expect(next(self.moment(1, commits: 5, isCommitting: true)) == .store)
    #expect(next(self.moment(2, commits: 6)) == nil && run.deadline == nil)
    let until = self.start + .seconds(13)
    #expect(next(self.moment(3, commits: 7)) == .wait(until: until) && run.deadline == until)
    #expect(next(self.moment(12, commits: 9)) == nil)
    #expect(next(self.moment(13, commits: 9)) == .read && run.deadline == nil)
    #expect(next(self.moment(50, commits: 9)) == nil)
    run.readAll(self.moment(60, commits: 9))
    #expect(next(self.moment(61, commits: 9)) == nil)
    #expect(next(self.moment(62, commits: 10)) == .end && !run.hasEnded)
    run.end(nil, at: self.start)
    #expect(next(self.moment(63, commits: 11)) == nil && run.hasEnded)
    run.beginAgain(in: "d")
    #expect(run.object.anew == ["d"] && next(self.moment(64)) == .plan)
  }

  @Test("Stores with all records need none, unless they get them again")
  func complete() {
    let done = self.pass(3, .complete)
    #expect(self.planned(self.object(), [self.candidate(0, done)]).run.hasEnded)
    #expect(self.planned(self.object(), []).run.hasEnded)
    let (run, step) = self.planned(
      self.object(), [self.candidate(0, done), self.candidate(1, done, isAnew: true)])
    #expect(step == nil && run.recipients == [1])
    #expect(run.pass == self.pass(4, .begun) && run.phase == .unbegun)
  }

  @Test("A pass continues from the store furthest behind, if all stores know it")
  func continues() {
    let far = self.candidate(0, self.pass(2, .reading, rows: 9))
    let near = self.candidate(1, self.pass(2, .reading, rows: 4))
    for stores in [[far, near], [near, far]] {
      let (run, step) = self.planned(self.object(), stores)
      #expect(step == .read && run.pass.rowCount == 4 && run.phase == .reading)
      #expect(Set(run.recipients) == [0, 1])
    }
    for other in [nil, self.pass(1, .reading, rows: 4)] {
      let (run, step) = self.planned(self.object(), [far, self.candidate(1, other)])
      #expect(step == nil && run.pass.number == 3 && run.phase == .unbegun)
    }
  }

  @Test(
    "A stored pass waits from when it began, at most from now, and an old one is begun again",
    arguments: [(40, 50), (95, 105), (130, 110), (-3501, nil)] as [(Int, Int?)])
  func stored(begun: Int, until: Int?) {
    var pass = self.pass(2, .begun)
    pass.begunAt = self.start + .seconds(begun)
    let (run, step) = self.planned(self.object(), [self.candidate(0, pass)])
    #expect(step == until.map { .wait(until: self.start + .seconds($0)) })
    #expect(run.pass.number == (until == nil ? 3 : 2))
  }

  @Test("With a condition, the stores' passes play no role")
  func condition() {
    let known = self.pass(2, .reading, rows: 5)
    let (run, step) = self.planned(
      self.object(condition: "x = 1"), [self.candidate(1, known, isAnew: true)])
    #expect(step == nil && run.phase == .unbegun && run.pass.number == 0)
    #expect(run.recipients(at: known) { _ in known } == [1])
  }

  @Test("A store that is ahead takes nothing until the reader has reached its place")
  func ahead() {
    let passes = [self.pass(2, .reading, rows: 9), self.pass(2, .reading, rows: 4), nil]
    let (run, _) = self.planned(
      self.object(), [self.candidate(0, passes[0]), self.candidate(1, passes[1])])
    func recipients(rows: Int, _ state: ReadPass.State = .reading) -> [Int] {
      run.recipients(at: self.pass(2, state, rows: rows)) { passes[$0] }
    }
    #expect(recipients(rows: 6) == [1])
    #expect(recipients(rows: 9) == [0, 1] && recipients(rows: 10) == [0, 1])
    #expect(recipients(rows: 6, .complete) == [0, 1])
  }

  @Test("The reader and the stream take turns")
  func turns() {
    var cycle = self.cycle([])
    let turns = (0..<4).map { _ in cycle.takesTurn() }
    #expect(turns == [true, false, true, false])
  }

  @Test("Nothing is left once all passes have ended, or cannot begin because their topics ended")
  func over() {
    var cycle = self.cycle([
      self.object(isRepaired: true), self.object(topic: "/data/B", isRepaired: true),
    ])
    func hasEnded(_ topic: Int) -> Bool { topic == 1 }
    #expect(!cycle.hasReadAll(hasEnded) && !cycle.hasRepaired(hasEnded))
    cycle.runs[0].end(SourceFailure(.refused, reason: "r", "no"), at: self.start)
    #expect(cycle.hasReadAll(hasEnded) && cycle.failure?.reason == "r")
    for repair in 0..<2 { cycle.end(repair: repair) }
    #expect(cycle.hasRepaired(hasEnded))
    // Without its topic, a pass that has begun is still read.
    _ = cycle.runs[1].plan([self.candidate(0)], limit: .zero, self.moment(0))
    #expect(cycle.hasReadAll(hasEnded))
    _ = cycle.runs[1].advance(self.moment(0), mayBegin: true)
    #expect(!cycle.hasReadAll(hasEnded) && !cycle.hasRepaired(hasEnded))
  }

  @Test(
    "Records are repaired after the pass, until no more are wrong; a run that follows looks again",
    arguments: [false, true])
  func repairs(follows: Bool) {
    var cycle = self.cycle([self.object(isRepaired: true)], follows: follows)
    func due(_ seconds: Int) -> [Int] {
      cycle.repairs.indices.filter {
        cycle.isDue(repair: $0, at: self.start + .seconds(seconds))
      }
    }
    #expect(cycle.repairs.map(\.store) == [1, 2] && due(0) == [])
    cycle.runs[0].end(nil, at: self.start)
    #expect(due(0) == [0, 1])
    cycle.asked(0, for: ["r1", "r5"], at: self.start)
    #expect(due(9) == [1] && cycle.repairs[0].last == "r5")
    #expect(cycle.expected.map(\.store) == [1])
    cycle.answered(read: 0, store: 1, isFailure: false, at: self.start + .seconds(1))
    #expect(due(0) == [1] && due(1) == [0, 1] && cycle.expected.isEmpty)
    cycle.asked(0, for: [], at: self.start + .seconds(2))
    #expect(due(61) == [1] && due(62) == (follows ? [0, 1] : [1]))
    #expect(cycle.repairs[0].last == "")
    cycle.asked(1, for: ["r3"], at: self.start)
    cycle.answered(read: 0, store: 2, isFailure: true, at: self.start + .seconds(3))
    #expect(due(62) == (follows ? [0] : []) && due(63) == (follows ? [0, 1] : []))
    #expect(cycle.repairs[1].last == "" && cycle.hasRepaired { _ in false } == !follows)
  }

  @Test("The reader may deliver to every store of a pass")
  func expected() {
    var cycle = self.cycle([self.object(), self.object(topic: "/data/B")])
    let known = self.pass(1, .reading, rows: 1)
    _ = cycle.runs[1].plan(
      [self.candidate(0, known), self.candidate(2, known)], limit: .zero, self.moment(0))
    #expect(cycle.expected.map(\.read) == [1, 1] && cycle.expected.map(\.store) == [0, 2])
  }
}
