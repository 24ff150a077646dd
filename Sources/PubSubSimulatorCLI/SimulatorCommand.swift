import ArgumentParser
import CBuildInfo
import TLSStream

@main
struct SimulatorCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "pubsub-simulator",
    abstract: "A fake Salesforce org with the Pub/Sub API, to test pipelines without an org.",
    version: String(cString: pubsub_etl_build()),
    subcommands: [ServeCommand.self, TopicsCommand.self], defaultSubcommand: ServeCommand.self)

  static func main() async {
    OpenSSLLifetime.outliveThreads()
    await self.main(nil)
  }
}
