import ArgumentParser
import TLSStream

@main
struct PubSubETL: AsyncParsableCommand {
  static let version = "0.1.0"

  static let configuration = CommandConfiguration(
    commandName: "pubsub-etl",
    abstract: "Exports Salesforce Pub/Sub API events exactly once.",
    version: Self.version,
    subcommands: [
      RunCommand.self, CheckCommand.self, PlanCommand.self, StatusCommand.self,
      CheckpointCommand.self, RefoldCommand.self,
    ])

  static func main() async {
    OpenSSLLifetime.outliveThreads()
    await self.main(nil)
  }
}
