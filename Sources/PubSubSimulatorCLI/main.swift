import ArgumentParser
import Glibc
import PubSubSimulator

var c = SimulatorConfiguration()
c.events = Int(CommandLine.arguments[1])!
c.truthPath = CommandLine.arguments[2]
let s = try SimulatorServer(configuration: c) { _ in }
let a = try await s.start()
let line = "\(a.endpoint) \(s.issueToken()) \(s.organizationID)\n"
_ = line.withCString { write(1, $0, strlen($0)) }
try await Task.sleep(for: .seconds(100000))
