import ArgumentParser
import CBuildInfo
import EventLoop
import Foundation
import TLSStream

@main
struct SimulatorCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "pubsub-simulator",
    abstract: "A fake Salesforce org with the Pub/Sub API, to test pipelines without an org.",
    version: String(cString: pubsub_etl_build()) + "\n"
      + String(unsafeUninitializedCapacity: 512) { pubsub_etl_libraries($0.baseAddress, $0.count) },
    subcommands: [ServeCommand.self, RehearseCommand.self, TopicsCommand.self],
    defaultSubcommand: ServeCommand.self)

  static func main() async {
    OpenSSLLifetime.outliveThreads()
    guard let arguments = ProcessArguments.afterName else { Self.end(70, ProcessArguments.missing) }
    guard RuntimeThreads.canBeWatched else { Self.end(78, RuntimeThreads.unwatched) }
    if let word = arguments.first, ["-h", "--help"].contains(word) {
      print(Self.help)
      return
    }
    await self.main(arguments)
  }

  private static func end(_ code: Int32, _ message: String) -> Never {
    FileHandle.standardError.write(Data("\(message)\n".utf8))
    Foundation.exit(code)
  }

  /// With the options of the command that is meant when none is named.
  private static var help: String {
    let serving = Self.helpMessage(for: ServeCommand.self).split(
      separator: "\n", omittingEmptySubsequences: false)
    // Behind the line of its usage come the options, in groups.
    let options = serving.drop { !$0.hasPrefix("USAGE:") }.dropFirst(2).joined(separator: "\n")
    return """
      OVERVIEW: \(Self.configuration.abstract)

      USAGE: pubsub-simulator [serve] [<options>]
             pubsub-simulator rehearse <pipeline> [--days <days>] [<options>]
             pubsub-simulator topics

      \(ServeCommand.configuration.discussion)

      \(options)
      SUBCOMMANDS:
        serve (default)         \(ServeCommand.configuration.abstract)
        rehearse                \(RehearseCommand.configuration.abstract)
        topics                  \(TopicsCommand.configuration.abstract)
      """
  }
}
