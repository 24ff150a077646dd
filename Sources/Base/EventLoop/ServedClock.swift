internal import Clocks
internal import Glibc

/// The clock of a rehearsal: the simulator that this process talks to skips the waits in which nothing happens.
///
/// Time passes as on the machine while anything works. When every thread of every participant sleeps and no
/// byte is on its way, all of them would wait for the earliest deadline of any; the simulator then tells all to
/// skip the time up to it. How that is known without races:
///
/// 1. `probe`: the program answers `quiet MARK DEADLINE` when its threads sleep, else `busy` (`Quiescence`).
/// 2. The simulator, all of whose programs were quiet, looks at itself in the same way, twice.
/// 3. It probes the programs again. Equal marks: no thread of theirs ran between the two probes. So there was an
///    instant, that of step 2, at which nothing ran and nothing was on its way anywhere.
/// 4. From such an instant on only a deadline, or somebody outside, can wake a thread. `skip MILLISECONDS`
///    moves all clocks to the earliest deadline. If a deadline passes on its own between steps 3 and 4, the
///    clock gets ahead by the duration of these steps: as if a thread had been scheduled late.
///
/// Outsiders are counted: a process that waits for a database, a web server or a child process is busy
/// (`ProcessClock.waitingForOthers`). Where `/proc` is not readable, nothing is skipped.
public enum ServedClock {
  /// The environment variable that names the address.
  public static let variable = "PUBSUB_ETL_CLOCK"

  /// How many milliseconds to wait for the clock.
  private static let greetingLimit: Int32 = 5000
  /// How far, in milliseconds, the time may be from the machine's: 50 years.
  private static let maxShift: Int64 = 50 * 365 * 86_400_000

  public struct Failure: Error, CustomStringConvertible {
    public var description: String
  }

  /// The port of `127.0.0.1:PORT`; nil for an address that is not on this machine.
  public static func port(of address: String) -> UInt16? {
    let parts = address.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 2, parts[0] == "127.0.0.1", let port = UInt16(parts[1]), port > 0 else {
      return nil
    }
    return port
  }

  /// Connects to the clock; from then on this process has its time. To be called once, before anything
  /// else takes time.
  public static func join(port: UInt16) throws(Failure) {
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
    ProcessClock.beServed(wallShift: shift)
    Deadlines.wakeAll()
    do {
      try Thread.detach(name: "clock") { Self.follow(connection) }
    } catch {
      throw Failure(description: "\(error)")
    }
  }

  /// Ends when the simulator does; then the machine's time continues from there.
  private static func follow(_ connection: ClockConnection) {
    while let line = connection.line() {
      let words = line.split(separator: " ")
      switch words.first {
      case "probe":
        guard connection.send(Self.answer()) else { return }
      case "skip":
        guard words.count == 2, let milliseconds = Int64(words[1]),
          (0...Self.maxShift).contains(milliseconds),
          ProcessClock.skippedTime + .milliseconds(milliseconds) <= .milliseconds(Self.maxShift)
        else { return }
        ProcessClock.skip(milliseconds: milliseconds)
        Deadlines.wakeAll()
      default: return
      }
    }
  }

  private static func answer() -> String {
    guard let mark = Quiescence.sample() else { return "busy" }
    let text = mark.map(String.init).joined(separator: ",")
    return "quiet \(text) \(Self.millisecondsToDeadline.map(String.init) ?? "-")"
  }

  /// Milliseconds until this process does something by itself, rounded up; nil when it never will.
  public static var millisecondsToDeadline: Int64? {
    Deadlines.earliest.map { deadline in
      let (seconds, attoseconds) = (deadline - ProcessClock.now).components
      return seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
    }
  }

  /// Moves the clock of this process, which is the simulator's.
  package static func skip(milliseconds: Int64) {
    ProcessClock.skip(milliseconds: milliseconds)
    Deadlines.wakeAll()
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
