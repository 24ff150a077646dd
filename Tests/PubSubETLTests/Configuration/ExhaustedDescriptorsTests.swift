import Glibc
import SalesforceAuth
import TLSStream
import Testing

@testable import PubSubETL

@Suite("Exhausted file descriptors")
struct ExhaustedDescriptorsTests {
  @Test(
    "Opening a pipeline file without a free descriptor is a transient error that names the call")
  func pipelineFile() async {
    await #expect(processExitsWith: .success) {
      let sample = try SamplePipeline()
      _ = try sample.load(SamplePipeline.minimal)
      Self.takeDescriptors()
      let error = try #require(throws: ConfigurationError.self) {
        try PipelineConfiguration.load(file: "\(sample.base)/pipeline.json")
      }
      #expect(error.exitCode == .tryAgain)
      #expect(error.description.contains("open: Too many open files"))
      #expect(error.description.contains("ulimit -n"))
    }
  }

  @Test(
    "Opening certificates without a free descriptor is transient, and a missing file is a mistake")
  func trustedCertificates() async {
    await #expect(processExitsWith: .success) {
      let missing = try #require(throws: TLSError.self) { try Self.context() }
      #expect(RunFailure(missing).exitCode == .configuration)
      Self.takeDescriptors()
      let refused = try #require(throws: TLSError.self) { try Self.context() }
      #expect(RunFailure(refused).exitCode == .tryAgain)
      #expect(refused.message.contains("open: Too many open files"))
    }
  }

  @Test(
    "A failed login ends the run with the exit code of its cause",
    arguments: [
      (AuthError(.exhausted, "open"), ExitCode.tryAgain),
      (AuthError(.unavailable, ""), .unavailable),
      (AuthError(.refused, ""), .refused), (AuthError(.untrusted, ""), .configuration),
      (AuthError(.configuration, ""), .configuration),
    ])
  func login(_ error: AuthError, _ code: ExitCode) {
    #expect(RunFailure(error).exitCode == code)
  }

  private static func context() throws {
    _ = try TLSContext.client(
      trust: .file("/nonexistent/ca.pem"), applicationProtocols: ["h2"])
  }

  /// No descriptor is left to this process.
  private static func takeDescriptors() {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = 0
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  }
}
