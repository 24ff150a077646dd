import FileSink
import Pipeline

/// A stdout sink during a run.
final class StdoutRun: RunSink {
  private let sink: StdoutSink

  init(_ settings: StdoutSettings, _ context: SinkContext) {
    let interruption = context.interruption
    self.sink = StdoutSink(
      name: settings.name, descriptor: StandardStream.output.rawValue,
      options: NDJSONOptions(int64AsStrings: settings.int64 == .string),
      givesUp: { interruption.hasLasted(RunnerConfiguration.stopPatience) })
  }

  var name: String { self.sink.name }

  var store: SinkStore { .checkpointed(self.sink) }

  var output: SinkOutput { SinkOutput(byteCount: self.sink.writtenByteCount) }

  func reportEntry(_ statistics: RunStatistics) -> RunReport.Sink {
    var entry = RunReport.Sink(
      name: self.name, type: StdoutSettings.type, target: "standard output")
    entry.rows = Int64(self.sink.lineCount)
    entry.bytes = Int64(self.sink.writtenByteCount)
    entry.counted = .rows(place: "on standard output")
    return entry
  }
}
