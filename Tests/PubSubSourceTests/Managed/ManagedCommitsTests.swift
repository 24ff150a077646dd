import Pipeline
import PubSubAPI
import Testing

@testable import PubSubSource

@Suite("Managed commits") struct ManagedCommitsTests {
  private let start = ContinuousClock.now
  private func id(_ number: UInt8) -> ReplayID { ReplayID([number]) }

  @Test("Nothing is committed before a position is durable")
  func nothing() {
    var commits = ManagedCommits()
    commits.opened()
    #expect(commits.due(at: self.start) == nil)
    #expect(commits.isSettled)
  }

  @Test("A new position is committed at once, and the newest later one after a second")
  func pace() {
    var commits = ManagedCommits()
    commits.opened()
    commits.becameDurable(self.id(1))
    #expect(commits.due(at: self.start) == ManagedCommit(id: "c1", replayID: [1]))
    commits.becameDurable(self.id(2))
    commits.becameDurable(self.id(3))
    #expect(commits.due(at: self.start + .milliseconds(999)) == nil)
    #expect(commits.due(at: self.start + .seconds(1)) == ManagedCommit(id: "c2", replayID: [3]))
    #expect(commits.due(at: self.start + .seconds(9)) == nil)
  }

  @Test("An unchanged position is committed again before the service gives up")
  func renewal() {
    var commits = ManagedCommits()
    commits.opened()
    commits.becameDurable(self.id(1))
    _ = commits.due(at: self.start)
    #expect(commits.due(at: self.start + .seconds(599)) == nil)
    #expect(commits.due(at: self.start + .seconds(600)) == ManagedCommit(id: "c2", replayID: [1]))
  }

  @Test("One answer also confirms earlier commits")
  func coalesced() {
    var commits = ManagedCommits()
    commits.opened()
    for number in UInt8(1)...3 {
      commits.becameDurable(self.id(number))
      _ = commits.due(at: self.start + .seconds(Int(number)))
    }
    #expect(commits.answered(id: "c2", hasFailed: false) == .confirmed(self.id(2)))
    #expect(commits.confirmedCount == 2)
    #expect(!commits.isSettled)
    #expect(commits.answered(id: "c3", hasFailed: false) == .confirmed(self.id(3)))
    #expect(commits.isSettled)
    #expect(commits.stored == self.id(3))
    #expect(commits.answered(id: "c1", hasFailed: false) == .unknown)
  }

  @Test("A refused position stays unconfirmed and is committed again later")
  func refused() {
    var commits = ManagedCommits()
    commits.opened()
    commits.becameDurable(self.id(1))
    _ = commits.due(at: self.start)
    #expect(commits.answered(id: "c1", hasFailed: true) == .failed(self.id(1)))
    #expect(commits.stored == nil)
    #expect(commits.failedCount == 1)
    #expect(commits.due(at: self.start + .seconds(59)) == nil)
    #expect(commits.due(at: self.start + .seconds(60))?.id == "c2")
    #expect(commits.answered(id: "c2", hasFailed: true) == .failed(self.id(1)))
    commits.becameDurable(self.id(2))
    #expect(commits.due(at: self.start + .seconds(61))?.replayID == [2])
  }

  @Test("An answer with another position confirms nothing, but says what the service has stored")
  func misplaced() {
    var commits = ManagedCommits()
    commits.opened()
    commits.becameDurable(self.id(1))
    _ = commits.due(at: self.start)
    commits.becameDurable(self.id(2))
    _ = commits.due(at: self.start + .seconds(1))
    #expect(
      commits.answered(id: "c2", hasFailed: false, stored: self.id(9))
        == .misplaced(self.id(9), asked: self.id(2)))
    #expect(commits.stored == self.id(9))
    #expect(commits.confirmedCount == 0)
    #expect(commits.failedCount == 2)
    #expect(commits.isSettled)
    // As after a refusal.
    #expect(commits.due(at: self.start + .seconds(60)) == nil)
    #expect(commits.due(at: self.start + .seconds(61)) == ManagedCommit(id: "c3", replayID: [2]))
    #expect(
      commits.answered(id: "c3", hasFailed: false, stored: self.id(2)) == .confirmed(self.id(2)))
    #expect(commits.stored == self.id(2))
    #expect(commits.confirmedCount == 1)
  }

  @Test("A refusal does not say what the service has stored")
  func refusedElsewhere() {
    var commits = ManagedCommits()
    commits.opened()
    commits.becameDurable(self.id(1))
    _ = commits.due(at: self.start)
    #expect(commits.answered(id: "c1", hasFailed: true, stored: self.id(9)) == .failed(self.id(1)))
    #expect(commits.stored == nil)
  }

  @Test("The last position is committed without waiting")
  func last() {
    var commits = ManagedCommits()
    commits.opened()
    commits.becameDurable(self.id(1))
    _ = commits.due(at: self.start)
    commits.becameDurable(self.id(2))
    #expect(commits.due(at: self.start, isLast: true)?.replayID == [2])
    #expect(commits.due(at: self.start, isLast: true) == nil)
  }

  @Test("A new stream commits the durable position again and ignores answers of the old one")
  func reopened() {
    var commits = ManagedCommits()
    commits.opened()
    commits.becameDurable(self.id(1))
    _ = commits.due(at: self.start)
    commits.opened()
    #expect(commits.answered(id: "c1", hasFailed: false) == .unknown)
    #expect(commits.due(at: self.start)?.id == "c2")
  }

  @Test("Without answers, only a few commits are outstanding")
  func bounded() {
    var commits = ManagedCommits()
    commits.opened()
    var sent = 0
    for second in 0..<100 {
      commits.becameDurable(self.id(UInt8(second)))
      if commits.due(at: self.start + .seconds(second)) != nil { sent += 1 }
    }
    #expect(sent == ManagedCommits.maxUnanswered)
  }
}
