import JSON

/// A sink that `init` and `run --to` can write with the few members that it needs.
protocol DraftedSink: ConfiguredSink {
  /// The members of the sink in a new pipeline file, without `type`.
  ///
  /// - Parameter pipeline: the pipeline's name.
  static func draft(pipeline: String) -> [JSONMember]

  /// The sink for a destination of the command line; nil if the destination is of another kind.
  ///
  /// - Throws: `DestinationMistake`.
  static func draft(destination: String) throws(DestinationMistake) -> SinkDraft?
}

/// The sink that a destination stands for.
struct SinkDraft: Equatable {
  /// Without `type`.
  var members: [JSONMember]
  /// Where the state goes, if there is a place for it beside the output. Absolute.
  var stateDirectory: String?
}

/// Why a destination cannot be used: a clause, with the remedy.
struct DestinationMistake: Error, CustomStringConvertible {
  var description: String
}

extension SinkRegistry {
  static var draftedTypes: [any DraftedSink.Type] {
    self.types.compactMap { $0 as? any DraftedSink.Type }
  }
}
