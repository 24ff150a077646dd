internal import DurableFiles
import Pipeline

extension VerifyRecord {
  /// - Parameters: milliseconds since 1970.
  init(_ report: VerifyReport, beganAt: Int64, endedAt: Int64) {
    self.init(
      version: Program.version, beganAt: beganAt, endedAt: endedAt,
      verdict: report.verdict.rawValue, compares: report.depthName)
    self.tables = report.entries.prefix(Self.maxTableCount).map { entry in
      let found = entry.findings
      return Table(
        sink: entry.sink.cut(to: RunRecord.maxNameLength),
        object: entry.entity.cut(to: RunRecord.maxNameLength), verdict: found.verdict.rawValue,
        total: Int64(found.total),
        drift: Int64(
          found.missing + found.extra + found.notFound + found.differing + found.outside))
    }
  }

  init(_ report: ChecksumReport, beganAt: Int64, endedAt: Int64) {
    self.init(
      version: Program.version, beganAt: beganAt, endedAt: endedAt,
      verdict: report.isEqual ? "equal" : "different", compares: "checksums")
  }

  /// Adds the verdict to the ledger of the pipeline.
  func store(for configuration: PipelineConfiguration) {
    do throws(FileSystemError) {
      try RunLedger(paths: configuration.statePaths).append(
        .verify(self), hiding: configuration.secrets)
    } catch {
      StandardStream.tell(
        PrintableText(
          line: "the verdict could not be added to the ledger of runs: \(error)",
          hiding: configuration.secrets))
    }
  }
}
