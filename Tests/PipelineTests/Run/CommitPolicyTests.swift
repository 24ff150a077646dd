import Testing

@testable import Pipeline

@Suite("Commit policy") struct CommitPolicyTests {
  let start = ContinuousClock.now

  private func policy() -> CommitPolicy {
    CommitPolicy(.init(maxEvents: 10, maxBytes: 1000, maxDelay: .seconds(1)))
  }

  @Test("A full batch waits for the next transaction, up to twice its size")
  func prefersTransactionEnd() {
    var policy = self.policy()
    policy.took(events: 10, at: self.start)
    #expect(policy.endsBefore(keyChanges: true))
    #expect(!policy.endsBefore(keyChanges: false))
    policy.took(events: 10, at: self.start)
    #expect(policy.endsBefore(keyChanges: false))
  }

  @Test("The age of a batch counts from the first event after a commit")
  func age() {
    var policy = self.policy()
    #expect(policy.deadline == nil)
    policy.took(events: 1, at: self.start)
    policy.took(events: 1, at: self.start + .milliseconds(900))
    #expect(!policy.isDue(pendingBytes: 0, isIdle: false, at: self.start + .milliseconds(999)))
    #expect(policy.isDue(pendingBytes: 0, isIdle: false, at: self.start + .seconds(1)))
    policy.sealed(at: self.start)
    policy.committed(at: self.start + .seconds(1))
    #expect(!policy.isDue(pendingBytes: 0, isIdle: false, at: self.start + .seconds(5)))
  }

  @Test("The age of events that waited for a slow commit counts from its end")
  func slowCommit() {
    var policy = self.policy()
    policy.took(events: 1, at: self.start)
    policy.sealed(at: self.start)
    policy.committed(at: self.start + .seconds(5))
    policy.took(events: 1, at: self.start + .seconds(1))
    #expect(!policy.isDue(pendingBytes: 0, isIdle: false, at: self.start + .milliseconds(5999)))
    #expect(policy.isDue(pendingBytes: 0, isIdle: false, at: self.start + .seconds(6)))
    policy.sealed(at: self.start)
    policy.committed(at: self.start + .seconds(6))
    policy.took(events: 1, at: self.start + .seconds(9))
    #expect(policy.deadline == self.start + .seconds(10))
  }

  @Test("Reaching the byte limit makes a batch due at once")
  func bytes() {
    #expect(self.policy().isDue(pendingBytes: 1000, isIdle: false, at: self.start))
  }

  @Test("A lone event is committed without waiting for others")
  func idle() {
    var policy = self.policy()
    policy.took(events: 1, at: self.start)
    #expect(policy.ripeAt == self.start + .milliseconds(5))
    #expect(!policy.isDue(pendingBytes: 0, isIdle: true, at: self.start))
    #expect(policy.isDue(pendingBytes: 0, isIdle: true, at: self.start + .milliseconds(5)))
    #expect(!policy.isDue(pendingBytes: 0, isIdle: false, at: self.start + .milliseconds(5)))
  }

  @Test("A position without events waits as long as it may")
  func positionAlone() {
    var policy = self.policy()
    policy.took(events: 0, at: self.start)
    #expect(policy.ripeAt == nil)
    #expect(!policy.isDue(pendingBytes: 0, isIdle: true, at: self.start + .milliseconds(999)))
    #expect(policy.isDue(pendingBytes: 0, isIdle: true, at: self.start + .seconds(1)))
  }

  @Test(
    "The pause between commits is a multiple of the time of the last one",
    arguments: [(1, 100), (10, 200), (30, 600), (2000, 1000)])
  func pause(took: Int, pause: Int) {
    var policy = self.policy()
    policy.took(events: 1, at: self.start)
    policy.sealed(at: self.start)
    let end = self.start + .milliseconds(took)
    policy.committed(at: end)
    policy.took(events: 1, at: end)
    #expect(policy.ripeAt == end + .milliseconds(pause))
  }

  @Test("A ripe commit ends where the transaction changes")
  func ripe() {
    var policy = self.policy()
    policy.begin(at: self.start)
    policy.took(events: 1, at: self.start)
    #expect(!policy.endsBefore(keyChanges: true))
    policy.begin(at: self.start + .milliseconds(4))
    #expect(!policy.endsBefore(keyChanges: true))
    policy.begin(at: self.start + .milliseconds(5))
    #expect(policy.endsBefore(keyChanges: true))
    #expect(!policy.endsBefore(keyChanges: false))
    policy.sealed(at: self.start + .milliseconds(5))
    #expect(!policy.endsBefore(keyChanges: true))
  }
}
