import ArgumentParser

@main
struct PubSubETL: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "pubsub-etl", abstract: "Exports Salesforce Pub/Sub API events exactly once.",
    version: "0.1.0")
}
