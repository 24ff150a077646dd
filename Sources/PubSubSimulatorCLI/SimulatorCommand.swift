import ArgumentParser

@main
struct SimulatorCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "pubsub-simulator",
    abstract: "A fake Salesforce org with the Pub/Sub API, to test pipelines without an org.",
    subcommands: [ServeCommand.self, TopicsCommand.self], defaultSubcommand: ServeCommand.self)
}
