import ArgumentParser
import Foundation
import PubSubSimulator
import SimulatedOrg

struct ServeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "serve", abstract: "Serves until SIGINT, SIGTERM or SIGHUP.",
    discussion: """
      Prints one line on standard output when it is ready:
      ready endpoint=URL login=URL control=URL ca=FILE secret=VALUE
      """)

  @Option(help: "Port of the Pub/Sub API; 0: chosen by the system.")
  var port: UInt16 = 0
  @Option(help: "Port of the login endpoint; 0: chosen by the system.")
  var loginPort: UInt16 = 0
  @Option(help: "Port of the control interface; 0: chosen by the system.")
  var controlPort: UInt16 = 0
  @Flag(help: "No TLS: http:// for API and login.")
  var plaintext = false
  @Option(
    help: ArgumentHelp(
      "Kind of records and events. sales: a sales team with users, accounts, contacts and "
        + "deals at work; other objects and platform events are random. random: values of every type "
        + "and all kinds of events, for tests. Default: random if a share of special events is "
        + "given, else sales.",
      valueName: "sales|random"))
  var data: OrgData?
  @Option(help: "The same seed gives the same records and events.")
  var seed: UInt64 = 1
  @Option(help: "Events published before the start; default: 200 with a sales team, else none.")
  var events: Int?
  @Option(
    help:
      "End of those events, epoch milliseconds; default: the first start with this state, or now."
  )
  var epoch: Int64?
  @Option(
    help: "Number of hours over which they are spread; default: 71 with a sales team, else 24.")
  var spanHours: Double?
  @Option(help: "Events per second after the start.")
  var liveRate = 0.0
  @Option(help: "Number of live events; default: no limit.")
  var liveCount: Int?
  @Option(
    parsing: .upToNextOption,
    help: "Topics that exist and have events; default: all (see 'topics').")
  var topics: [String] = []
  @Option(help: "Writes the published events, NDJSON.")
  var truth: String?
  @Option(
    help: "Writes shell 'export' lines for a pipeline; the server is ready when the file exists.")
  var env: String?
  @Option(
    name: [.customLong("state-dir"), .customLong("ca-dir")], help: "Keeps the CA and the epoch.")
  var stateDir: String?
  @Option(help: "Seconds of silence after which an empty response is sent.")
  var keepaliveInterval = 90.0
  @Option(help: "Maximum number of events per response; default: natural sizes.")
  var maxResponseEvents: Int?
  @Option(help: "Milliseconds between the first request and the first event.")
  var subscribeDelay = 20
  @Option(help: "Seconds for which an access token works; default: until revoked.")
  var tokenLifetime: Double?
  @Option(help: "Total number of delivered events; after that, subscriptions are refused.")
  var deliveryLimit = 10_000_000
  @Option(help: "Writes counts of delivered events at the end and on SIGUSR1, JSON.")
  var delivered: String?
  @Flag(
    help:
      "Serves the time to pubsub-etl-rehearsal (PUBSUB_ETL_CLOCK): idle waits are skipped.")
  var clock = false
  @Option(
    help: "Keeps in this file by how many milliseconds its clock is ahead, as a 64-bit integer.")
  var clockFile: String?
  @OptionGroup(title: "Logins")
  var logins: LoginOptions
  @OptionGroup(title: "Records, for REST and Bulk")
  var records: RecordOptions
  @Option(
    help:
      "A managed subscription, as in name=X&topic=/data/…&default=earliest; see the control interface."
  )
  var managed: [String] = []
  @Option(help: "A fault, as JSON, from the start; see the control interface.")
  var fault: [String] = []
  @Option(help: "JSON file of faults, quotas and hidden fields; see the documentation.")
  var faults: String?
  @OptionGroup(title: "Shares of special events and values among random ones, 0...1")
  var mix: MixOptions

  func validate() throws {
    if let events = self.events, events < 0 {
      throw ValidationError("--events must not be negative")
    }
    if self.liveRate < 0 { throw ValidationError("--live-rate must not be negative") }
    if let hours = self.spanHours, !(0...71).contains(hours) {
      throw ValidationError("--span-hours must be within the retention, 0 to 71")
    }
    if self.madeOf == .random, self.records.existing == nil, self.records.state != nil {
      throw ValidationError("--state needs --existing or --data sales")
    }
    guard (0.1...270).contains(self.keepaliveInterval) else {
      throw ValidationError("--keepalive-interval must be 0.1 to 270 seconds")
    }
    if let most = self.maxResponseEvents, !(1...100).contains(most) {
      throw ValidationError("--max-response-events must be 1 to 100")
    }
    if self.clock, self.liveRate > 0 {
      throw ValidationError("--clock skips time, in which --live-rate would publish; use one")
    }
    if self.deliveryLimit < 0 { throw ValidationError("--delivery-limit must not be negative") }
    if !(0...10_000).contains(self.subscribeDelay) {
      throw ValidationError("--subscribe-delay must be 0 to 10000 ms")
    }
  }

  func run() async throws {
    let signals = SignalStream()
    let script = try self.faults.map { try FaultScript(contentsOf: $0) }
    var configuration = self.simulator()
    script?.set(&configuration)
    let server = try SimulatorServer(
      configuration: configuration, servesClock: self.clock
    ) { error in
      FileHandle.standardError.write(Data("pubsub-simulator: \(error)\n".utf8))
      Foundation.exit(74)
    }
    try await server.add(script?.faults ?? [])
    for text in self.managed {
      try await server.setManaged(
        Dictionary(
          text.split(separator: "&").map { pair in
            let parts = pair.split(separator: "=", maxSplits: 1)
            return (String(parts[0]), parts.count > 1 ? String(parts[1]) : "")
          }, uniquingKeysWith: { $1 }))
    }
    for fault in self.fault { try await server.addFaults(json: fault) }
    let clock = try self.clock ? server.serveClock() : nil
    defer { clock?.stop() }
    let addresses = try await server.start()
    if let env = self.env {
      // With the secret of the control interface, which other users must not read.
      try OutputFile.write(
        server.environment(addresses, clock: clock?.address).shellText, to: env, mode: 0o600)
    }
    let line =
      "ready endpoint=\(addresses.endpoint) login=\(addresses.loginURL) "
      + "control=\(addresses.controlURL) ca=\(addresses.caFile ?? "-") "
      + "secret=\(addresses.controlSecret)"
      + (clock.map { " clock=\($0.address)" } ?? "") + "\n"
    FileHandle.standardOutput.write(Data(line.utf8))
    for await signal in signals.stream {
      try await self.writeDelivered(server)
      if let path = self.records.state { try await server.writeState(to: path) }
      if signal != SIGUSR1 { break }
    }
    await server.stop()
  }

  private func writeDelivered(_ server: SimulatorServer) async throws {
    guard let path = self.delivered else { return }
    try OutputFile.write(await server.deliveredJSON() + "\n", to: path)
  }

  /// Special events occur among random data only, so a share of them chooses that.
  private var madeOf: OrgData {
    self.data ?? (self.mix.mix == GeneratorMix() ? .sales : .random)
  }

  private func simulator() -> SimulatorConfiguration {
    var configuration = SimulatorConfiguration()
    let isTeam = self.madeOf == .sales
    configuration.org.data = self.madeOf
    configuration.org.seed = self.seed
    configuration.org.events = self.events ?? (isTeam ? 200 : 0)
    configuration.org.epoch = self.epoch
    configuration.org.span = Int64((self.spanHours ?? (isTeam ? 71 : 24)) * 3_600_000)
    configuration.org.topics = self.topics.flatMap { $0.split(separator: ",").map(String.init) }
    configuration.org.mix = self.mix.mix
    configuration.liveRate = self.liveRate
    configuration.liveCount = self.liveCount
    configuration.org.truthPath = self.truth
    configuration.org.clockPath = self.clockFile
    configuration.org.stateDirectory = self.stateDir
    configuration.isPlaintext = self.plaintext
    configuration.port = self.port
    configuration.loginPort = self.loginPort
    configuration.controlPort = self.controlPort
    configuration.org.tokenLifetime = self.tokenLifetime.map { Int64($0 * 1000) }
    configuration.org.keepaliveInterval = Int64(self.keepaliveInterval * 1000)
    configuration.org.subscribeDelay = self.subscribeDelay
    configuration.org.maxResponseEvents = self.maxResponseEvents
    configuration.org.deliveryLimit = self.deliveryLimit
    self.records.set(&configuration.org)
    self.logins.set(&configuration.org)
    configuration.compressesRecords = self.records.gzip
    return configuration
  }
}
