internal import Checkpoint
internal import Clocks
import Logging

extension IncidentWatch {
  /// Handles mistakes in a pipeline file like a failed run, if the file still says where the state of
  /// the pipeline is, and no run has the lock.
  ///
  /// - Parameters:
  ///   - place: what can be read of the file.
  ///   - show: prints the mistakes; not called if an earlier mail had them.
  static func misconfigured(
    _ place: PipelineConfiguration?, _ error: ConfigurationError, isMailed: Bool, show: () -> Void
  ) async {
    // A pipeline that has never run gets no state by a mistake.
    guard let place, FilePath.exists(place.checkpoint.directory),
      await Self.locked(place, isMailed: isMailed, { $0.ended(with: error, show: show) }) != nil
    else { return show() }
  }

  /// Stores what `verify` has found, and notifies. If a run has the lock, that run or the next one notifies.
  ///
  /// - Parameter verdict: nil if nothing is decided.
  static func verified(_ verdict: StoredVerdict?, of configuration: PipelineConfiguration) async {
    guard configuration.notify.drift, let verdict,
      StoredVerdict.load(configuration.statePaths).map(verdict.isWeaker) != true
    else { return }
    do {
      try verdict.store(in: configuration.statePaths, hiding: configuration.secrets)
    } catch {
      StandardStream.tell(
        PrintableText(
          line: "the verdict for notify.drift could not be stored: \(error)",
          hiding: configuration.secrets))
      return
    }
    await Self.locked(configuration, isMailed: false) { $0.compared() }
  }

  /// Runs a closure with a watch under the lock of the pipeline, for commands other than `run`, and sends the
  /// notifications that are due.
  ///
  /// - Returns: nil if a run has the lock of the pipeline, or it cannot be taken.
  @discardableResult
  private static func locked<Value>(
    _ configuration: PipelineConfiguration, isMailed: Bool, _ body: (IncidentWatch) -> Value
  ) async -> Value? {
    let clock = ProcessClock()
    guard
      let lock = try? FileCheckpointStore(
        directory: configuration.checkpoint.directory, pipeline: configuration.name, isRun: false,
        clock: clock)
    else { return nil }
    let logger = Logger.console(
      ErrorConsole(), level: .warning, format: .standard(), hiding: configuration.secrets,
      clock: clock)
    let watch = IncidentWatch(configuration, clock: clock, logger: logger, isMailed: isMailed)
    watch.begin()
    let value = body(watch)
    await watch.deliver()
    withExtendedLifetime(lock) {}
    return value
  }
}
