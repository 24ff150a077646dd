import ArgumentParser
import CBuildInfo
import Dispatch
import EventLoop
import Glibc
import TLSStream

/// The beginning of the process.
@main
enum Main {
  /// Not `async`: an asynchronous `main` starts threads of the runtime before its first line, which may
  /// need descriptors before there is a check that some are free.
  static func main() {
    StandardStream.occupyClosed()
    OpenSSLLifetime.outliveThreads()
    do { try RuntimeDescriptors.require() } catch {
      StandardStream.error.write(PrintableText(line: "\(error)", hiding: SecretMask()))
      Program.exit(withError: ExitCode.tryAgain.error)
    }
    Task { @MainActor in
      await RuntimeDescriptors.open()
      await Program.main(nil)
      exit(0)
    }
    dispatchMain()
  }
}

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
}
