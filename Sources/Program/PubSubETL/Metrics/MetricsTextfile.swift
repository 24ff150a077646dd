import Bytes
internal import DurableFiles
import Glibc
import Pipeline

/// The file in which the textfile collector of node_exporter finds the metrics of a pipeline.
///
/// Each run adds what it has counted to what the file holds, so that counters grow from run to run and
/// `rate()` works. The run holds the lock of the pipeline meanwhile.
struct MetricsTextfile {
  struct Failure: Error, CustomStringConvertible {
    var description: String
  }

  /// Absolute.
  let path: String
  let pipeline: String
  /// The names of topics and sinks whose earlier values are kept.
  let topics: Set<String>
  let sinks: Set<String>

  /// A pipeline with thousands of topics needs a tenth of it.
  private static let maxByteCount = 64 << 20

  /// Replaces the file; a reader sees the old one or the new one.
  ///
  /// - Returns: why counters begin at 0 although there is a file; nil if they do not.
  /// - Throws: `Failure` if the file is not one of this pipeline, or cannot be replaced.
  func add(_ samples: MetricSamples) throws(Failure) -> String? {
    var samples = samples
    var restart: String?
    let text = try self.earlierText()
    do throws(MetricSamples.ReadingError) {
      let earlier = try MetricSamples(reading: text, pipeline: self.pipeline)
      // An object that a sink has no more is not counted again.
      let counted = Set(samples.series[Metric.incorrectRows.name, default: [:]].keys.map { $0[1] })
      samples.add(earlier) { metric, labels in
        let isRecounted = metric.name == Metric.incorrectRows.name && counted.contains(labels[1])
        return !isRecounted && self.isKnown(metric, labels)
      }
    } catch {
      switch error {
      case .otherPipeline(let name):
        throw Failure(
          description: "it has the metrics of pipeline '\(name)'; give each pipeline a file of its "
            + "own")
      case .malformed(let line):
        restart =
          "line \(line) of \(self.path) is damaged, so the counters of metrics.textfile begin at 0 again"
      }
    }
    do throws(FileSystemError) {
      try self.replace(MetricText(samples, as: .prometheus, in: .textfile).text)
    } catch {
      throw Failure(description: "\(error)")
    }
    return restart
  }

  /// Empty if there is no file.
  private func earlierText() throws(Failure) -> [UInt8] {
    guard FilePath.exists(self.path) else { return [] }
    let text: [UInt8]
    do throws(TextFile.ReadError) {
      text = try TextFile.read(self.path, limit: Self.maxByteCount)
    } catch {
      throw Failure(description: "it \(error)")
    }
    guard text.isEmpty || text.starts(with: "# HELP pubsub_etl_".utf8) else {
      throw Failure(
        description: "it has something else than the metrics of a pipeline, and was not changed")
    }
    return text
  }

  /// node_exporter is another user, so everybody may read the file.
  private func replace(_ text: String) throws(FileSystemError) {
    let name = self.path.split(separator: "/").last.map(String.init) ?? ""
    // The collector looks at names that end in `.prom`.
    let temporary = "\(FilePath.directory(of: self.path))/.\(name).tmp"
    let fileSystem = SystemFileSystem()
    let file = try OpenFile(temporary: temporary, on: fileSystem)
    try file.write(Array(text.utf8))
    guard chmod(temporary, 0o644) == 0 else {
      throw FileSystemError("chmod", temporary, code: errno)
    }
    try file.synchronize()
    try fileSystem.rename(temporary, to: self.path)
  }

  /// Whether an earlier value is still about this pipeline. Other labels are words of this program, or
  /// codes of errors.
  private func isKnown(_ metric: Metric, _ labels: [String]) -> Bool {
    zip(metric.labels, labels).allSatisfy { label, value in
      switch label {
      case .pipeline: value == self.pipeline
      case .topic: self.topics.contains(value)
      case .sink: self.sinks.contains(value)
      case .store: self.sinks.contains(value) || value == CheckpointedStore.name
      case .version: false
      case .phase, .object, .state, .reason, .kind, .place, .result, .exitCode:
        Metric.isWord(value)
      }
    }
  }
}

extension Metric {
  /// Whether a text can be the value of a label that has no name of the user's.
  static func isWord(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.count <= 100
      && text.utf8.allSatisfy { $0.isWordCharacter || ".-".utf8.contains($0) }
  }
}
