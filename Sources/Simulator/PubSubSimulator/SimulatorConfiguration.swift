public import SimulatedOrg

/// The org, and how it is served.
public struct SimulatorConfiguration: Sendable {
  public var org = SimulatedOrgConfiguration()
  /// Events per second after the start.
  public var liveRate = 0.0
  /// How many of them; nil: without end.
  public var liveCount: Int?
  public var isPlaintext = false
  /// Ports of gRPC, login and control; 0 lets the system choose.
  public var port: UInt16 = 0
  public var loginPort: UInt16 = 0
  public var controlPort: UInt16 = 0
  /// Answers of REST and Bulk are compressed for who accepts that.
  public var compressesRecords = false
  public var maxConcurrentStreams: UInt32 = 1000

  public init() {}
}
