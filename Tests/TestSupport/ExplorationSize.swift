import FoundationEssentials

/// How much of a large space the tests walk through.
package enum ExplorationSize {
  /// All of it, with `PUBSUB_TEST_FULL` set; otherwise a sample.
  package static let isFull = ProcessInfo.processInfo.environment["PUBSUB_TEST_FULL"] != nil
}
