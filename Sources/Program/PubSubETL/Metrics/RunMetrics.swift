internal import Checkpoint
internal import Clocks
import Logging
import Pipeline
import SchemaStore

/// The metrics of a run: gathers them, serves them while it is in progress, and adds them to the textfile
/// at its end. Used by one thread at a time.
///
/// No run fails because of its metrics: what cannot be served or written is a warning.
final class RunMetrics {
  private let configuration: PipelineConfiguration
  private let clock: ProcessClock
  private let logger: Logger
  private var reading: MetricReading
  private let endpoint: MetricsEndpoint
  private var server: MetricsServer?
  /// Nil before the login.
  var session: Session?
  /// Nil before the org can be asked.
  var allowance: AllowanceWatch?

  /// - Returns: nil if the pipeline has no metrics.
  init?(_ configuration: PipelineConfiguration, clock: ProcessClock, logger: Logger) {
    guard configuration.metrics.isOn else { return nil }
    self.configuration = configuration
    self.clock = clock
    self.logger = logger
    self.reading = MetricReading(
      pipeline: configuration.name,
      statistics: RunStatistics(topics: configuration.source.topics.map(\.name)))
    self.endpoint = MetricsEndpoint(self.reading)
  }

  /// Begins to serve. Call this with the lock of the pipeline: a run that waits for another one would
  /// take its port.
  func begin() {
    guard let address = self.configuration.metrics.listen else { return }
    do {
      self.server = try MetricsServer(
        address, clock: self.clock,
        onFailure: { [logger] in logger.warning("metrics.listen cannot be served any more: \($0)")
        },
        answer: self.endpoint.answer)
      self.logger.info(
        "serving metrics", metadata: ["address": "\(self.server?.address ?? address.host)"])
    } catch {
      self.logger.warning(
        "metrics.listen cannot be served, and the run continues without: \(error)")
    }
  }

  /// - Parameter document: the last checkpoint; nil on a first run.
  func began(at document: CheckpointDocument?) {
    self.reading.statistics = RunStatistics(
      topics: self.configuration.source.topics.map(\.name), positions: document?.topics ?? [:])
  }

  func progressed(_ statistics: RunStatistics, sinks: OpenSinks, retries: RetryLedger) {
    self.reading.statistics = statistics
    self.reading.sinks = sinks.reportEntries
    self.reading.retries = retries
    self.readCounts()
    if self.server != nil { self.endpoint.publish(self.reading) }
  }

  /// Counts the wrong rows of databases, for the textfile. Call this after the last commit, on the thread of
  /// sinks.
  func countIncorrectRows() {
    guard self.configuration.metrics.textfile != nil else { return }
    for case let sink as any RepairableSink in self.configuration.sinks where sink.hasCurrentRows {
      do {
        self.reading.incorrectRows[sink.name] = try sink.incorrectRows(self.configuration)
      } catch {
        self.logger.info(
          "the wrong rows of sink '\(sink.name)' were not counted: \(RunFailure(error).message)")
      }
    }
  }

  private func readCounts() {
    self.reading.schemas = self.session?.schemas.counts ?? self.reading.schemas
    self.reading.apiCalls = self.session?.connection.restCallCount ?? self.reading.apiCalls
    self.reading.allowance = self.allowance?.last ?? self.reading.allowance
  }

  /// Stops serving, and writes the textfile. Call this with the lock of the pipeline.
  func end(_ report: RunReport) {
    self.server?.stop()
    self.server = nil
    guard let path = self.configuration.metrics.textfile else { return }
    // A run that failed early has retried, and made calls, too.
    self.reading.retries = report.retries
    self.readCounts()
    let file = MetricsTextfile(
      path: path, pipeline: self.configuration.name,
      topics: Set(self.configuration.source.topics.map(\.name)),
      sinks: Set(self.configuration.sinks.map(\.name)))
    do throws(MetricsTextfile.Failure) {
      let restart = try file.add(self.samples(endingWith: report))
      if let restart { self.logger.warning("\(restart)") }
    } catch {
      self.logger.warning("metrics.textfile, \(path), was not written: \(error)")
    }
  }

  private func samples(endingWith report: RunReport) -> MetricSamples {
    var samples = self.reading.samples
    let name = self.configuration.name
    samples.set(.runs, name, "\(report.exitCode.rawValue)", to: 1)
    samples.set(.lastRun, name, toTime: report.finishedAt)
    samples.set(
      .lastDuration, name, to: Double(max(0, report.finishedAt - report.startedAt)) / 1000)
    samples.set(.lastExitCode, name, to: report.exitCode.rawValue)
    if report.exitCode == .success {
      samples.set(.lastSuccess, name, toTime: report.finishedAt)
    }
    return samples
  }
}
