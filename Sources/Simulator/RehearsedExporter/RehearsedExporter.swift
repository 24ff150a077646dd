import Clocks
import Glibc
import PubSubETL
import RehearsalClock

/// `pubsub-etl-rehearsal`: the exporter by a clock that a simulator on this machine serves
/// (`pubsub-simulator serve --clock`, `rehearse`).
///
/// A clock controlled by others could make a run believe that its position had expired or that its
/// lease was still valid. So it is accepted only if no real org can be reached: the clock and the
/// org's endpoints have to be loopback addresses.
@main
enum RehearsedExporter {
  static func main() { Main.run(clockOfRun: Self.clock) }

  private static let remedy = "; unset \(ServedClock.variable)"

  /// Without an address, the clock is the machine's.
  private static func clock(for org: OrgPlaces) throws(ClockRefusal) -> ProcessClock {
    guard let address = getenv(ServedClock.variable).map({ String(cString: $0) }), !address.isEmpty
    else { return ProcessClock() }
    guard let port = ServedClock.port(of: address) else {
      throw ClockRefusal(
        message: "\(ServedClock.variable): expected 127.0.0.1:PORT, the clock of a simulator"
          + Self.remedy)
    }
    guard org.isEndpointLocal else {
      throw ClockRefusal(
        message: "\(ServedClock.variable) is for rehearsals, and source.org.endpoint is not a "
          + "loopback address" + Self.remedy)
    }
    guard org.isLoginLocal else {
      throw ClockRefusal(
        message: "\(ServedClock.variable) is for rehearsals, and the login of source.org.auth is "
          + "not at a loopback address" + Self.remedy)
    }
    do throws(ServedClock.Failure) {
      return ProcessClock(try ServedClock.join(port: port))
    } catch {
      throw ClockRefusal(message: "\(ServedClock.variable): \(error)\(Self.remedy)")
    }
  }
}
