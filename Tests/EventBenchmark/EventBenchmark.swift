import ArgumentParser
import Bytes
import Cryptography
import FileSink
import Glibc
import Pipeline
import PubSubSource

/// Drives the way of an event from a parsed response to its lines, or to a compressed file, on one
/// thread and without a network. Its cost per event is the slope between two numbers of passes, so
/// that generating the events and starting the process count for nothing.
@main
struct EventBenchmark: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "event-benchmark",
    abstract: "Decodes and encodes the same events again and again, and prints the CPU time.")

  /// The last step that is done for each event.
  enum Step: String, ExpressibleByArgument, CaseIterable {
    case decode, lines, files
  }

  @Option(help: "The topic. The simulator generates its events, unless --payloads is given.")
  var topic = "/data/OpportunityChangeEvent"

  @Option(help: "The Avro schema of the events in --payloads.")
  var schema: String?

  @Option(help: "A file of payloads, each after its length in four bytes, little-endian.")
  var payloads: String?

  @Option(help: "The number of events; they are taken again in each pass.")
  var events = 2000

  @Option(help: "How often the events are taken.")
  var passes = 20

  @Option(help: "The last step: decode, lines or files.")
  var step = Step.lines

  @Flag(help: "Compress and write on another thread, with --step files.")
  var aside = false

  @Option(help: "The directory for the files of --step files.")
  var work = "/tmp/event-benchmark"

  func run() throws {
    let input = try BenchmarkInput(self)
    let path = EventPath(input)
    let digest = try path.digest()
    let began = Self.processorTime()
    switch self.step {
    case .decode: for _ in 0..<self.passes { try path.decode() }
    case .lines: for _ in 0..<self.passes { try path.encode() }
    case .files: try path.write(passes: self.passes, to: self.work, aside: self.aside)
    }
    let microseconds = (Self.processorTime() - began) * 1e6 / Double(input.count * self.passes)
    print(
      "\(self.topic) \(self.step) \(input.count) events, \(path.lineCount) lines of "
        + "\(path.byteCount / max(input.count, 1)) bytes an event: \(microseconds) us/event; "
        + "sha256 of the lines \(digest)")
  }

  private static func processorTime() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}

/// Decodes responses into one batch after the other, as the runner does.
final class EventPath {
  private let input: BenchmarkInput
  private let batch: RecordBatch
  @exclusivity(unchecked) private var lines = ByteBuffer(capacity: 1 << 17)
  private let encoder: [any RowEncoder]
  /// Of the last pass.
  @exclusivity(unchecked) private(set) var lineCount = 0
  @exclusivity(unchecked) private(set) var byteCount = 0

  init(_ input: BenchmarkInput) {
    self.input = input
    self.batch = RecordBatch(layout: input.decoders[0].layout)
    self.encoder = input.decoders.map { NDJSONFormat().encoder(for: $0.layout, of: .events) }
  }

  func decode() throws {
    for run in self.input.runs { try self.decode(run) }
  }

  func encode() throws { try self.encode { _ in } }

  /// The SHA-256 of all lines, which no change of speed may change.
  func digest() throws -> String {
    var hash = SHA256()
    try self.encode { hash.update(UnsafeRawBufferPointer($0)) }
    return hash.snapshot().hex
  }

  func write(passes: Int, to directory: String, aside: Bool) throws {
    var configuration = FileSinkConfiguration(
      directory: directory, pipeline: "benchmark", org: "00D000000000001", acceptsReset: true)
    configuration.writesAside = aside
    let sink = FileSink(configuration)
    try sink.recover(from: nil)
    var ordinal: Int64 = 0
    for _ in 0..<passes {
      for run in self.input.runs {
        try self.decode(run)
        for index in self.batch.events.indices {
          self.batch.events[index].ordinal = ordinal
          ordinal += 1
        }
        try sink.write(self.batch)
        if sink.pendingByteCount > 16 << 20 { try Self.commit(sink, finish: false) }
      }
    }
    try Self.commit(sink, finish: true)
  }

  private static func commit(_ sink: FileSink, finish: Bool) throws {
    _ = try sink.flush(finish: finish)
    _ = try sink.committed()
  }

  private func encode(_ take: (UnsafeBufferPointer<UInt8>) -> Void) throws {
    self.lineCount = 0
    self.byteCount = 0
    for run in self.input.runs {
      try self.decode(run)
      for event in self.batch.events {
        var rows = event.rows
        while !rows.isEmpty {
          let end = self.encoder[run.decoder].append(
            rows, of: self.batch, from: .event(epoch: 1, ordinal: 0), to: &self.lines,
            limit: 1 << 16)
          rows = end..<rows.upperBound
        }
        self.lineCount += event.rowCount
      }
      take(self.lines.bytes)
      self.byteCount += self.lines.count
      self.lines.removeAll()
    }
  }

  private func decode(_ run: BenchmarkInput.Run) throws {
    let decoder = self.input.decoders[run.decoder]
    self.batch.removeAll(layout: decoder.layout)
    try self.input.message.withUnsafeBufferPointer { bytes in
      for event in run.events {
        try decoder.decode(
          eventID: UnsafeBufferPointer(rebasing: bytes[event.id]),
          replayID: UnsafeBufferPointer(rebasing: bytes[event.replayID]),
          payload: UnsafeBufferPointer(rebasing: bytes[event.payload]), into: self.batch)
      }
    }
  }
}
