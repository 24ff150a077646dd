import Pipeline

extension PipelineRunner {
  /// Runs to the end while the source reads.
  ///
  /// - Parameter background: the reading. It gets a thread of its own, because databases may block that of the
  ///   runner; it is cancelled at the end.
  func run(
    reading background: @escaping @Sendable () async -> Void
  ) async -> Result<RunOutcome, any Error> {
    await withTaskGroup(of: Void.self) { group in
      group.addTask(executorPreference: globalConcurrentExecutor, operation: background)
      let result: Result<RunOutcome, any Error>
      do { result = .success(try await self.run()) } catch { result = .failure(error) }
      group.cancelAll()
      await group.waitForAll()
      return result
    }
  }
}
