import ArgumentParser

/// `pubsub-etl checkpoint`: positions shown, set and restored by hand.
struct CheckpointCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "checkpoint",
    abstract:
      "Shows the stored positions, sets one, restores lost ones, or accepts another org.",
    subcommands: [
      CheckpointShowCommand.self, CheckpointSetCommand.self, CheckpointRestoreCommand.self,
      CheckpointAcceptOrgCommand.self,
    ])
}

extension CheckpointCommand {
  static let exitCodes = """
    Exit codes: 0 done; 64 command line, or not confirmed; 65 no checkpoint, a damaged one, or \
    nothing to restore from; 69 a database is unavailable, 77 it refuses access; 74 not stored; \
    75 a run is in progress, here or on another host that holds a database's lease; 78 mistakes \
    in the pipeline file.
    """

  /// Runs the body; what it throws is said on standard error and becomes the exit code.
  static func reporting(hiding secrets: SecretMask, _ body: () throws -> Void) throws {
    do {
      try body()
    } catch {
      throw RunFailure(error).reported(hiding: secrets)
    }
  }
}
