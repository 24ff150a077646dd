internal import Checkpoint
internal import Clocks
internal import DurableFiles
import Glibc
import Logging

/// The lines that a run leaves in the ledger. No run fails because of them: only `runs` and `report` read them.
extension PipelineRun {
  func noteBeginning() {
    do throws(FileSystemError) {
      try self.ledger.append(
        .began(self.beginning), isDurable: false, hiding: self.configuration.secrets)
    } catch {
      // A cause that lasts is reported at the end.
      self.logger.info("the beginning of the run is not in the ledger of runs: \(error)")
    }
  }

  func noteEnd() {
    do throws(FileSystemError) {
      try self.ledger.append(
        .run(RunRecord(self.report, self.beginning)), hiding: self.configuration.secrets)
    } catch {
      // What makes an output fail often makes the ledger fail too, and was reported.
      guard self.report.exitCode != .output else { return }
      self.logger.warning("the ledger of runs could not be written: \(error)")
    }
  }

  /// The run as the ledger will have it, a moment before its end.
  var recordBeforeEnd: RunRecord {
    var report = self.report
    report.finishedAt = self.clock.wallTime
    report.retries = self.log.retries
    report.message = report.message.map { self.configuration.secrets.message($0) }
    _ = report.fail(on: self.configuration.run.failOn)
    return RunRecord(report, self.beginning)
  }

  /// Reads the incidents of earlier runs.
  ///
  /// - Returns: whether to notify now of runs that were killed, as this one may be, too.
  func beginIncidents() -> Bool {
    guard let incidents else { return false }
    // A run that has stored a position after its beginning got somewhere, and a person sees how a snapshot ends.
    let storedAt =
      PipelineStatus.modificationTime(of: self.configuration.statePaths.checkpoint) ?? 0
    let isDue = incidents.begin(
      killed: self.ledger.unreported.filter { $0.command == .run && $0.beganAt > storedAt })
    self.log.isSilent = incidents.isSilent
    return isDue
  }

  private var ledger: RunLedger { RunLedger(paths: self.configuration.statePaths) }

  private var beginning: RunBeginning {
    RunBeginning(
      id: self.report.runID, version: Program.version,
      command: self.purpose.isSnapshot ? .snapshot : .run, processID: getpid(),
      beganAt: self.report.startedAt)
  }
}
