package import SimulatedOrg

/// The org, and how it is served.
package struct SimulatorConfiguration: Sendable {
  package var org = SimulatedOrgConfiguration()
  /// Events per second after the start.
  package var liveRate = 0.0
  /// How many of them; nil: without end.
  package var liveCount: Int?
  package var isPlaintext = false
  /// Ports of gRPC, login and control; 0 lets the system choose.
  package var port: UInt16 = 0
  package var loginPort: UInt16 = 0
  package var controlPort: UInt16 = 0
  /// Answers of REST and Bulk are compressed for who accepts that.
  package var compressesRecords = false
  package var maxConcurrentStreams: UInt32 = 1000

  package init() {}
}
