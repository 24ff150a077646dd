import Testing

@testable import PubSubETL

@Suite("Notices of failures")
struct RetryNoticesTests {
  private let topic = RetryNotices.Place.topic("/data/A")
  private let refused = "Subscribe to /data/A: connect to 127.0.0.1:1: Connection refused"

  /// `3 told`: attempts, and whether somebody is warned.
  private func fail(_ notices: inout RetryNotices, _ messages: [String]) -> [String] {
    var said: [String] = []
    for message in messages {
      let (attempts, isShown) = notices.failed(self.topic, message)
      said.append("\(attempts)\(isShown ? " told" : "")")
    }
    return said
  }

  @Test("A new connection is reported at its first failure and at a different one")
  func neverWorked() {
    var notices = RetryNotices()
    let handshake = "Subscribe to /data/A: TLS handshake failed"
    let said = self.fail(&notices, [self.refused, self.refused, handshake, handshake])
    #expect(said == ["1 told", "2", "3 told", "4"])
  }

  @Test("A connection that has worked is reported at its third failure in a row")
  func hasWorked() {
    var notices = RetryNotices()
    var told = [notices.worked(self.topic)]
    for _ in 0..<2 {
      let said = self.fail(&notices, [self.refused, self.refused])
      #expect(said == ["1", "2"])
      told.append(notices.worked(self.topic))
    }
    let said = self.fail(&notices, Array(repeating: self.refused, count: 4))
    #expect(said == ["1", "2", "3 told", "4"])
    told.append(notices.worked(self.topic))
    #expect(told == [nil, nil, nil, 4])
  }

  @Test("A refusal is reported at once and only once, even if the topic has worked")
  func refusal() {
    var notices = RetryNotices()
    _ = notices.worked(self.topic)
    let shown = (0..<3).map { _ in
      notices.failed(self.topic, "/data/A: not found", isRefusal: true).isShown
    }
    #expect(shown == [true, false, false])
    #expect(notices.worked(self.topic) == 3)
  }

  @Test("Topics with the same failure are reported once, whatever IDs and times it contains")
  func alike() {
    var notices = RetryNotices()
    func failure(_ topic: String, _ id: String) -> String {
      "Subscribe to \(topic): unavailable try again in \(id.count) s. rpcId: \(id)"
    }
    let failures: [(RetryNotices.Place, String)] = [
      (.topic("/data/A"), failure("/data/A", "1f3a-bc")),
      (.topic("/data/B"), failure("/data/B", "99ffe0-cd")),
      (.topic("/data/A"), failure("/data/A", "77-ab")), (.login, "login: no such host"),
      (.sink("db"), "sink 'db': connection lost"),
    ]
    var shown: [Bool] = []
    for (place, message) in failures { shown.append(notices.failed(place, message).isShown) }
    #expect(shown == [true, false, false, true, true])
  }
}
