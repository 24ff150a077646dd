internal import Checkpoint
import JSON
import Pipeline

/// Compares the sinks of the pipeline file with those of the checkpoint: which resume, which are
/// new, and which are kept after their removal.
///
/// All sinks are at the pipeline's position, because one checkpoint stores them together. A removed
/// sink stays where it was when it was removed.
struct SinkSuccession: Equatable {
  /// State to recover from, by the name of the sink; nil on a first run.
  var states: [String: SinkState] = [:]
  /// `removedSinks` of the next checkpoint.
  var removed: [String: RemovedSink] = [:]
  /// Sinks removed by this run, whose files in progress have to be finished.
  var leaving: [String] = []

  /// - Parameters:
  ///   - sinks: the sinks of the pipeline file: name, `start`, directory.
  ///   - now: milliseconds since 1970.
  /// - Throws: `RunFailure` (78) for a sink that does not say where it begins or cannot continue.
  init(
    _ document: CheckpointDocument, sinks: [(name: String, start: SinkStart?, directory: String)],
    now: Int64
  ) throws {
    for (name, kept) in document.removedSinks {
      // Sinks with files in progress are kept, because the files would otherwise count as strays
      // and be removed.
      let isOver = now - kept.removedAt > PipelineStatus.retention
      guard !isOver || kept.state.openFileCount > 0 else { continue }
      self.removed[name] = kept
    }
    for (name, state) in document.sinks where !sinks.contains(where: { $0.name == name }) {
      self.leaving.append(name)
      self.removed[name] = RemovedSink(removedAt: now, state: state, positions: document.topics)
    }
    self.leaving.sort()
    for sink in sinks {
      if let state = document.sinks[sink.name] {
        self.states[sink.name] = state
      } else {
        try self.admit(sink, document)
      }
    }
  }

  private mutating func admit(
    _ sink: (name: String, start: SinkStart?, directory: String), _ document: CheckpointDocument
  ) throws {
    let old = self.removed[sink.name]
    // A renamed sink takes over the state under its old name.
    let namesake = self.removed.first { $0.value.state.directory == sink.directory }
    let fits = old.map { Self.places($0.positions) == Self.places(document.topics) } ?? false
    guard sink.start == .now || fits else {
      let why =
        old == nil
        ? "the checkpoint does not know sink '\(sink.name)'"
        : "sink '\(sink.name)' was removed, and the pipeline has run without it since; the "
          + "events since then cannot be delivered to one sink alone"
      let renamed =
        namesake.map {
          $0.key == sink.name ? "" : " (also if it is sink '\($0.key)' under a new name)"
        }
        ?? ""
      throw RunFailure(
        .newSink,
        "\(why); add \"start\": \"now\" to the sink to begin after the pipeline's "
          + "position\(renamed); for earlier events, give it a pipeline of its own")
    }
    if let old, old.state.directory == sink.directory {
      self.states[sink.name] = old.state
    } else if let state = namesake?.value.state {
      self.states[sink.name] = state
    } else {
      // The sink is known to be new, so older files in its directory are no sign of lost state.
      self.states[sink.name] = SinkState(directory: sink.directory)
    }
    self.removed[sink.name] = nil
    if let namesake {
      self.removed[namesake.key] = nil
      self.leaving.removeAll { $0 == namesake.key }
    }
  }

  /// Epoch and next ordinal by topic, which show what events were taken.
  private static func places(_ positions: [String: TopicPosition]) -> [String: [Int64]] {
    positions.mapValues { [Int64($0.epoch), $0.nextOrdinal] }
  }
}
