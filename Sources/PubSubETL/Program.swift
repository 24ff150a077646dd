import ArgumentParser
import CBuildInfo
import TLSStream

@main
struct Program: AsyncParsableCommand {
  static let version = PUBSUB_ETL_VERSION

  static let configuration = CommandConfiguration(
    commandName: "pubsub-etl",
    abstract: "Exports Salesforce Pub/Sub API events exactly once.",
    version: String(cString: pubsub_etl_build()),
    subcommands: [
      RunCommand.self, CheckCommand.self, PlanCommand.self, StatusCommand.self,
      CheckpointCommand.self, SnapshotCommand.self, RepairCommand.self, VerifyCommand.self,
      RefoldCommand.self, DeadLettersCommand.self, PublishCommand.self, PermissionsCommand.self,
      EvalCommand.self,
      TestCommand.self,
      PipelineSchemaCommand.self,
    ])

  static func main() async {
    StandardStream.occupyClosed()
    OpenSSLLifetime.outliveThreads()
    await self.main(nil)
  }
}
