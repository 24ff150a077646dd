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
    #expect(!policy.isDue(pendingBytes: 0, at: self.start + .milliseconds(999)))
    #expect(policy.isDue(pendingBytes: 0, at: self.start + .seconds(1)))
    policy.sealed()
    policy.committed(at: self.start + .seconds(1))
    #expect(!policy.isDue(pendingBytes: 0, at: self.start + .seconds(5)))
  }

  @Test("The age of events that waited for a slow commit counts from its end")
  func slowCommit() {
    var policy = self.policy()
    policy.took(events: 1, at: self.start)
    policy.sealed()
    policy.committed(at: self.start + .seconds(5))
    policy.took(events: 1, at: self.start + .seconds(1))
    #expect(!policy.isDue(pendingBytes: 0, at: self.start + .milliseconds(5999)))
    #expect(policy.isDue(pendingBytes: 0, at: self.start + .seconds(6)))
    policy.sealed()
    policy.committed(at: self.start + .seconds(6))
    policy.took(events: 1, at: self.start + .seconds(9))
    #expect(policy.deadline == self.start + .seconds(10))
  }

  @Test("Reaching the byte limit makes a batch due at once")
  func bytes() {
    #expect(self.policy().isDue(pendingBytes: 1000, at: self.start))
  }
}
