import Testing

@testable import HTTP2Transport

@Suite("Connection state")
struct ConnectionStateTests {
  let start = ContinuousClock.now

  func machine() -> ConnectionStateMachine {
    var machine = ConnectionStateMachine(backoff: .init())
    machine.run()
    return machine
  }

  @Test("The first stream opens the connection") func firstStream() {
    var machine = ConnectionStateMachine(backoff: .init())
    #expect(machine.streamWanted(now: self.start) == .wait)
    machine.run()
    #expect(machine.streamWanted(now: self.start) == .connect)
    #expect(machine.streamWanted(now: self.start) == .wait)
    machine.connected()
    #expect(machine.streamWanted(now: self.start) == .use)
  }

  @Test("The delay grows with each failure") func backOff() {
    var machine = self.machine()
    var now = self.start
    var pauses: [Duration] = []
    for _ in 0..<12 {
      #expect(machine.streamWanted(now: now) == .connect)
      machine.connectFailed(now: now, jitter: 0)
      guard case .waitUntil(let deadline) = machine.streamWanted(now: now) else {
        Issue.record("does not wait")
        return
      }
      pauses.append(deadline - now)
      now = deadline
    }
    #expect(pauses.first == .seconds(1))
    #expect(pauses[1] == .milliseconds(1600))
    #expect(pauses.last == .seconds(60))
    #expect(zip(pauses, pauses.dropFirst()).allSatisfy { $0 <= $1 })
  }

  @Test("Jitter stays within its share of the delay") func jitter() {
    let backoff = HTTP2ClientTransport.Configuration.Backoff()
    #expect(backoff.pause(afterFailures: 1, jitter: -1) == .milliseconds(800))
    #expect(backoff.pause(afterFailures: 1, jitter: 1) == .milliseconds(1200))
  }

  @Test("A connection that has served a response is replaced at once") func answered() {
    var machine = self.machine()
    _ = machine.streamWanted(now: self.start)
    machine.connectFailed(now: self.start, jitter: 0)
    let later = self.start + .seconds(1)
    #expect(machine.streamWanted(now: later) == .connect)
    machine.connected()
    machine.answered()
    machine.connectionGone(now: later, jitter: 0)
    #expect(machine.streamWanted(now: later) == .connect)
    machine.connectFailed(now: later, jitter: 0)
    #expect(machine.streamWanted(now: later) == .waitUntil(later + .seconds(1)))
  }

  @Test("A connection that closes without serving a response is a failure") func useless() {
    var machine = self.machine()
    _ = machine.streamWanted(now: self.start)
    machine.connected()
    machine.connectionGone(now: self.start, jitter: 0)
    #expect(machine.streamWanted(now: self.start) == .waitUntil(self.start + .seconds(1)))
  }

  @Test("A response on a closing connection ends the back-off") func leaving() {
    var machine = self.machine()
    _ = machine.streamWanted(now: self.start)
    machine.connected()
    machine.connectionGone(now: self.start, jitter: 0)
    #expect(machine.streamWanted(now: self.start) == .waitUntil(self.start + .seconds(1)))
    machine.answered()
    #expect(machine.streamWanted(now: self.start) == .connect)
    machine.answered()
    #expect(machine.streamWanted(now: self.start) == .wait)
    machine.connectFailed(now: self.start, jitter: 0)
    #expect(machine.streamWanted(now: self.start) == .waitUntil(self.start + .seconds(1)))
  }

  @Test("Keepalive pings a silent peer only while streams are open") func keepalive() {
    var keepalive = Keepalive(
      interval: .seconds(60), timeout: .seconds(20), now: self.start, jitter: 0)
    let at = { (seconds: Int) in self.start + .seconds(seconds) }
    #expect(keepalive.timerFired(now: at(60), hasStreams: false) == .wait(until: at(120)))
    keepalive.received(now: at(100))
    #expect(keepalive.timerFired(now: at(120), hasStreams: true) == .wait(until: at(160)))
    #expect(keepalive.timerFired(now: at(160), hasStreams: true) == .ping(nextCheck: at(180)))
    keepalive.received(now: at(170))
    #expect(keepalive.timerFired(now: at(180), hasStreams: true) == .wait(until: at(190)))
    keepalive.pingAcknowledged(jitter: 0)
    #expect(keepalive.timerFired(now: at(190), hasStreams: true) == .wait(until: at(230)))
    #expect(keepalive.timerFired(now: at(230), hasStreams: true) == .ping(nextCheck: at(250)))
    #expect(keepalive.timerFired(now: at(250), hasStreams: true) == .dead)
  }

  @Test("Jitter lengthens the pause between pings and never shortens it") func pingJitter() {
    let at = { (seconds: Int) in self.start + .seconds(seconds) }
    var keepalive = Keepalive(
      interval: .seconds(60), timeout: .seconds(20), now: self.start, jitter: 0)
    #expect(keepalive.firstCheck == at(60))
    #expect(keepalive.timerFired(now: at(59), hasStreams: true) == .wait(until: at(60)))
    #expect(keepalive.timerFired(now: at(60), hasStreams: true) == .ping(nextCheck: at(80)))
    keepalive.received(now: at(64))
    keepalive.pingAcknowledged(jitter: 0.5)
    #expect(keepalive.timerFired(now: at(80), hasStreams: true) == .wait(until: at(127)))
  }

  @Test("ENHANCE_YOUR_CALM halves the rate of pings") func enhanceYourCalm() {
    var pace = KeepalivePace(interval: .seconds(60))
    pace.peerLeft(errorCode: .noError)
    pace.peerLeft(errorCode: .internalError)
    #expect(pace.interval == .seconds(60))
    pace.peerLeft(errorCode: .enhanceYourCalm)
    #expect(pace.interval == .seconds(120))
    for _ in 0..<100 { pace.peerLeft(errorCode: .enhanceYourCalm) }
    #expect(pace.interval == .seconds(3600))
    var rare = KeepalivePace(interval: .seconds(7200))
    rare.peerLeft(errorCode: .enhanceYourCalm)
    #expect(rare.interval == .seconds(7200))
  }

  func problem(_ bytes: [UInt8], by size: Int) -> String? {
    var preface = PeerPreface()
    for start in stride(from: 0, to: bytes.count, by: size) {
      let piece = Array(bytes[start..<min(start + size, bytes.count)])
      if let problem = piece.withUnsafeBytes({ preface.receive($0) }) { return problem }
    }
    return nil
  }

  @Test("The peer's first bytes show whether it speaks HTTP/2") func preface() {
    for size in 1...20 {
      #expect(self.problem([0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 9], by: size) == nil)
      #expect(self.problem(Array("HTTP/1.1 200 OK".utf8), by: size)?.contains("HTTP/1") == true)
      #expect(self.problem([0x15, 3, 3, 0, 2, 2, 10, 0, 0], by: size)?.contains("TLS") == true)
      #expect(self.problem([0, 0, 0, 4, 1, 0, 0, 0, 0], by: size) != nil)
      #expect(self.problem(Array("220 mail.example".utf8), by: size) != nil)
    }
  }
}
