internal import Clocks
internal import EventLoop
internal import Glibc

extension ServedClock {
  /// The environment variable that names the address.
  package static let variable = "PUBSUB_ETL_CLOCK"

  /// How many milliseconds to wait for the clock.
  private static let greetingLimit: Int32 = 5000
  /// How far, in milliseconds, the time may be from the machine's: 50 years.
  private static let maxShift: Int64 = 50 * 365 * 86_400_000

  package struct Failure: Error, CustomStringConvertible {
    package var description: String
  }

  /// The port of `127.0.0.1:PORT`; nil for an address that is not on this machine.
  package static func port(of address: String) -> UInt16? {
    let parts = address.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 2, parts[0] == "127.0.0.1", let port = UInt16(parts[1]), port > 0 else {
      return nil
    }
    return port
  }

  /// Connects to the clock of a simulator, and follows it.
  package static func join(port: UInt16) throws(Failure) -> ServedClock {
    let connection = ClockConnection(try Self.connect(port))
    guard connection.send("clock 1 \(getpid())"),
      let answer = connection.line(milliseconds: Self.greetingLimit)
    else {
      throw Failure(description: "the clock at 127.0.0.1:\(port) does not answer")
    }
    let words = answer.split(separator: " ")
    guard words.count == 2, words[0] == "wall", let shift = Int64(words[1]),
      (-Self.maxShift...Self.maxShift).contains(shift)
    else {
      throw Failure(description: "127.0.0.1:\(port) is not the clock of a simulator")
    }
    let clock = ServedClock(wallShift: shift)
    do {
      try Thread.detach(name: "clock") { clock.follow(connection) }
    } catch {
      throw Failure(description: "\(error)")
    }
    return clock
  }

  /// Ends when the simulator does; then the machine's time continues from there.
  private func follow(_ connection: ClockConnection) {
    while let line = connection.line() {
      let words = line.split(separator: " ")
      switch words.first {
      case "probe":
        guard connection.send(self.answer()) else { return }
      case "skip":
        guard words.count == 2, let milliseconds = Int64(words[1]),
          (0...Self.maxShift).contains(milliseconds),
          self.skipped + .milliseconds(milliseconds) <= .milliseconds(Self.maxShift)
        else { return }
        self.skip(milliseconds: milliseconds)
      default: return
      }
    }
  }

  private func answer() -> String {
    guard let mark = self.quietMark() else { return "busy" }
    let text = mark.map(String.init).joined(separator: ",")
    return "quiet \(text) \(self.millisecondsToDeadline.map(String.init) ?? "-")"
  }

  private static func connect(_ port: UInt16) throws(Failure) -> Int32 {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else {
      throw Failure(description: "\(SystemCallError("socket"))")
    }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard result == 0 else {
      let error = SystemCallError("connect")
      close(descriptor)
      throw Failure(description: "the clock at 127.0.0.1:\(port): \(error)")
    }
    return descriptor
  }
}
