import PubSubTestSupport
import Testing

@testable import Pipeline

@Suite("Reads of fields without events") struct RefreshTests {
  private let start = ContinuousClock.now

  private func time(_ seconds: Int) -> Refresh.Instant { self.start + .seconds(seconds) }

  private func pass(
    _ part: String?, _ number: Int, _ state: ReadPass.State, at seconds: Int
  ) -> ReadPass {
    var pass = ReadPass(entity: "A", part: part, number: number, state: state)
    pass.begunAt = self.time(seconds)
    return pass
  }

  private let blind = Refresh(fields: nil, every: .seconds(100))

  @Test("A refresh is due after the last read of the fields, which may be one of all columns")
  func due() {
    let whole = self.pass(nil, 1, .complete, at: 20)
    let own = self.pass(self.blind.part, 1, .complete, at: 50)
    func due(_ pass: ReadPass?, _ whole: ReadPass?) -> Refresh.Instant {
      self.blind.dueAt(after: pass, whole: whole, now: self.time(60))
    }
    #expect(due(nil, nil) == self.time(60))
    #expect(due(nil, whole) == self.time(120))
    #expect(due(own, whole) == self.time(150))
    #expect(due(self.pass(self.blind.part, 2, .reading, at: 55), whole) == self.time(60))
    #expect(due(own, self.pass(nil, 2, .reading, at: 58)) == self.time(160))
  }

  @Test("Another list of fields is read at once")
  func lists() {
    let first = Refresh(fields: ["A__c"], every: .seconds(100))
    let second = Refresh(fields: ["A__c", "B__c"], every: .seconds(100))
    #expect(Set([first.part, second.part, self.blind.part]).count == 3)
    let whole = self.pass(nil, 1, .complete, at: 20)
    #expect(first.dueAt(after: nil, whole: whole, now: self.time(30)) == self.time(30))
  }

  // MARK: Passes

  private func run(isRepeated: Bool = false) -> ReadRun {
    var object = ReadObject(
      entity: "A", topic: "/data/AChangeEvent",
      layout: RecordLayout.of([Column("Name", 0)], slotCount: 1))
    object.refresh = self.blind
    return ReadRun(object, topic: 0, isRepeated: isRepeated)
  }

  private func moment(_ seconds: Int, commits: Int = 0) -> ReadRun.Moment {
    ReadRun.Moment(
      now: self.time(seconds), commits: commits, isCommitting: false,
      visibilityWait: .seconds(10))
  }

  private func candidate(_ store: Int, _ pass: ReadPass?, whole: Int) -> ReadRun.Candidate {
    var candidate = ReadRun.Candidate(
      store: store, pass: pass, lastNumber: pass?.number ?? 0, isAnew: false)
    candidate.whole = self.pass(nil, 1, .complete, at: whole)
    return candidate
  }

  @Test("A pass begins when its topic is caught up, and is repeated")
  func passes() {
    var run = self.run(isRepeated: true)
    let candidates = [
      self.candidate(0, nil, whole: 0),
      self.candidate(1, self.pass(self.blind.part, 3, .complete, at: 150), whole: 0),
    ]
    #expect(run.plan(candidates, limit: .seconds(500), self.moment(200)) == nil)
    #expect(run.recipients == [0] && run.pass.number == 4 && run.pass.isRefresh)
    #expect(run.advance(self.moment(201), mayBegin: false) == nil)
    #expect(run.advance(self.moment(202), mayBegin: true) == .store)
    #expect(
      run.advance(self.moment(203, commits: 1), mayBegin: true) == .wait(until: self.time(213)))
    #expect(run.advance(self.moment(213, commits: 1), mayBegin: true) == .read)
    run.readAll(self.moment(220, commits: 1))
    #expect(run.advance(self.moment(221, commits: 2), mayBegin: true) == .end)
    run.end(nil, at: self.time(221))
    #expect(run.hasEnded && run.deadline == self.time(302))
  }

  @Test("A pass is planned only once its topic is caught up, after those over all columns")
  func planned() {
    var run = self.run(isRepeated: true)
    #expect(run.advance(self.moment(200), mayBegin: false) == nil && run.awaitsEvents)
    #expect(run.advance(self.moment(200), mayBegin: true) == .plan)
    let candidates = [self.candidate(0, nil, whole: 150)]
    #expect(run.plan(candidates, limit: .seconds(500), self.moment(200)) == nil)
    #expect(run.hasEnded && !run.awaitsEvents)
    #expect(run.advance(self.moment(250), mayBegin: false) == nil && run.awaitsEvents)
    #expect(run.advance(self.moment(251), mayBegin: true) == .plan)
  }

  @Test("What is not due ends a run that is caught up, and waits in one that follows")
  func notDue() {
    let candidates = [self.candidate(0, nil, whole: 150)]
    var once = self.run()
    #expect(once.plan(candidates, limit: .seconds(500), self.moment(200)) == nil)
    #expect(once.phase == .ended)
    var again = self.run(isRepeated: true)
    #expect(again.plan(candidates, limit: .seconds(500), self.moment(200)) == nil)
    #expect(again.phase == .idle(until: self.time(250)) && again.hasEnded)
  }

  @Test("A pass that was reading continues; one that had requested nothing begins again")
  func resumed() {
    var run = self.run()
    let reading = self.pass(self.blind.part, 2, .reading, at: 190)
    let step = run.plan(
      [self.candidate(0, reading, whole: 0)], limit: .seconds(500), self.moment(200))
    #expect(step == .read && run.pass == reading)
    var other = self.run()
    let begun = self.pass(self.blind.part, 2, .begun, at: 190)
    #expect(
      other.plan([self.candidate(0, begun, whole: 0)], limit: .seconds(500), self.moment(200))
        == nil)
    #expect(other.phase == .unbegun && other.pass.number == 3)
  }
}
