import Testing

@testable import PubSubETL

@Suite("Configuration of metrics") struct MetricsConfigurationTests {
  private static func pipeline(_ metrics: String) -> String {
    SamplePipeline.minimal.replacing(
      #""version": 1,"#, with: #""version": 1, "metrics": { \#(metrics) },"#)
  }

  @Test("Without the key nothing is measured")
  func off() throws { #expect(try !SamplePipeline().load().metrics.isOn) }

  @Test(
    "An address is a port of the loopback interface, or written in numbers",
    arguments: [
      ("9464", "127.0.0.1", 9464), ("127.0.0.1:9464", "127.0.0.1", 9464),
      ("0.0.0.0:0", "0.0.0.0", 0), ("[::1]:65535", "::1", 65535), ("${PORT}", "127.0.0.1", 80),
    ] as [(String, String, UInt16)])
  func addresses(text: String, host: String, port: UInt16) throws {
    let configuration = try SamplePipeline().load(
      Self.pipeline(#""listen": "\#(text)""#), environment: ["PORT": "80"])
    #expect(configuration.metrics.listen == MetricsAddress(host: host, port: port))
    #expect(configuration.metrics.isOn)
  }

  @Test(
    "Host names and anything else are mistakes",
    arguments: [
      "", "localhost:9464", ":9464", "127.0.0.1", "127.0.0.1:", "127.0.0.1:+1", "127.0.0.1:65536",
      "::1:9464", "[::1]", "[127.0.0.1]:1", "[::1]9464", "1.2.3:1", "127.0.0.1:1:2", " 9464", "-1",
    ])
  func mistakes(text: String) throws {
    let mistakes = try SamplePipeline().mistakes(Self.pipeline(#""listen": "\#(text)""#))
    #expect(mistakes.count == 1)
    #expect(
      mistakes.first?.contains(
        #"/metrics/listen: expected a port, or a numeric address and a port such as "127."#)
        == true)
  }

  @Test("A textfile has the only name that the collector reads")
  func textfile() throws {
    let sample = try SamplePipeline()
    let configuration = try sample.load(Self.pipeline(#""textfile": "m/opps.prom""#))
    #expect(configuration.metrics.textfile == "\(sample.base)/m/opps.prom")
    for name in ["opps.txt", "opps.prom/x", "m/.prom"] {
      let mistakes = try sample.mistakes(Self.pipeline(#""textfile": "\#(name)""#))
      #expect(mistakes.count == 1)
      #expect(mistakes.first?.contains("/metrics/textfile: the name of the file") == true)
    }
  }
}
