import JSON
import TLSStream

/// Where Prometheus finds the metrics of runs (`metrics`).
struct MetricsConfiguration: KeyedObject, Sendable, Equatable {
  /// Absolute; nil: none is written.
  var textfile: String?
  /// Nil: nothing is served.
  var listen: MetricsAddress?

  var isOn: Bool { self.textfile != nil || self.listen != nil }

  static var keys: [Key<Self>] {
    [
      .key(
        "textfile", \.textfile, .textfile,
        "A file that each run replaces at its end, for the textfile collector of node_exporter; its "
          + "name ends in .prom. Relative to this file.",
        example: "/var/lib/prometheus/node-exporter/opportunities.prom"),
      .key(
        "listen", \.listen, .listenAddress,
        "The address at which a run answers /metrics, /healthz and /readyz over HTTP while it is in "
          + "progress. A port alone listens on 127.0.0.1; for other addresses, write them as numbers: "
          + "anybody who can reach them can read the metrics.", example: "127.0.0.1:9464"),
    ]
  }
}

/// An address to listen at.
struct MetricsAddress: Sendable, Equatable {
  /// Numeric.
  var host: String
  /// 0 lets the system choose.
  var port: UInt16

  init(host: String, port: UInt16) { (self.host, self.port) = (host, port) }

  /// `127.0.0.1:9464`, `[::1]:9464`, or a port of the loopback interface.
  ///
  /// - Returns: nil for another text, a host name included.
  init?(_ text: String) {
    let parts = text.split(separator: "]", maxSplits: 1, omittingEmptySubsequences: false)
    var (host, port): (Substring, Substring)
    if text.hasPrefix("["), parts.count == 2, parts[1].hasPrefix(":") {
      (host, port) = (parts[0].dropFirst(), parts[1].dropFirst())
      guard host.contains(":") else { return nil }
    } else {
      let parts = text.split(separator: ":", omittingEmptySubsequences: false)
      guard parts.count <= 2, let last = parts.last else { return nil }
      (host, port) = (parts.count == 2 ? parts[0] : Self.loopback, last)
    }
    guard let number = UInt16(port), port.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
      SocketAddress.isNumeric(host: String(host))
    else { return nil }
    self.init(host: String(host), port: number)
  }

  private static let loopback: Substring = "127.0.0.1"
}

extension Kind<String> {
  fileprivate static var textfile: Self {
    Self.path.map { reader, name, path in
      guard path.hasSuffix(".prom"), !path.hasSuffix("/.prom") else {
        reader.report(
          name, "the name of the file has to end in .prom, or the collector does not read it")
        return nil
      }
      return path
    }
  }
}

extension Kind<MetricsAddress> {
  fileprivate static var listenAddress: Self {
    .text(
      orElse: "expected a port, or a numeric address and a port such as \"127.0.0.1:9464\" or "
        + "\"[::1]:9464\"", MetricsAddress.init)
  }
}
