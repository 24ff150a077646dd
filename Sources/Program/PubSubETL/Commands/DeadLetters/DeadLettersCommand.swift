import ArgumentParser

/// `pubsub-etl dead-letters`: events that could not be exported, seen, sent again or discarded.
struct DeadLettersCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "dead-letters",
    abstract: "Lists events that could not be exported, sends them again, or drops them.",
    discussion: """
      Events that could not be decoded, or that a database refused, are stored in files in \
      dead_letter.directory. The files never change: the state of each letter is in \
      _ledger-<name>.ndjson next to them.
      """,
    subcommands: [
      DeadLettersListCommand.self, DeadLettersShowCommand.self, DeadLettersRetryCommand.self,
      DeadLettersExportCommand.self, DeadLettersDropCommand.self,
    ])

  static let exitCodes = """
    Exit codes: 0 done; 64 command line, no such letter, or not confirmed; 65 letters are lost, \
    because a file or the manifest is missing or was changed: the command does the rest; \
    74 not stored; 75 a run is in progress; 78 mistakes in the pipeline file.
    """
}
