import ArgumentParser
import Clocks

/// `pubsub-etl topics`: what the login may subscribe to.
struct TopicsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "topics",
    abstract: "Lists the topics that the login may subscribe to.",
    discussion: """
      A line per topic: its name, its kind and its label in Setup. Objects with change events \
      selected come first, then channels, then platform events. Subscribes to nothing, so it costs no \
      deliveries. Custom channels are listed if the user has View Setup and Configuration. \
      Standard error has what is not listed, and what the user is not allowed to subscribe to.
      Exit codes: 0 listed; 64 command line; 69 service or org unavailable; 74 standard output; 75 \
      an allowance is used up; 77 login refused, or no access to the REST API; 78 mistakes in the org \
      file, or a variable is not set.

      EXAMPLES:
        pubsub-etl topics                            the org of the environment
        pubsub-etl topics --org org.json --json      for programs
      """)

  @OptionGroup var orgOptions: OrgOptions

  @Flag(help: "Print JSON.")
  var json = false

  func run() async throws {
    let (org, secrets) = try self.orgOptions.loadOrExit()
    SignalWatcher.endAtOnce()
    let list: TopicList
    do {
      list = try await OrgConnection.open(org, secrets: secrets, clock: ProcessClock()) {
        try await TopicList.read($0)
      }
    } catch {
      throw RunFailure(error).reported(hiding: secrets)
    }
    if !self.json {
      for line in list.notes {
        StandardStream.tell(PrintableText(line: line, hiding: secrets))
      }
    }
    let text =
      self.json
      ? PrintableText(json: list.json, hiding: secrets)
      : PrintableText(lines: list.text, hiding: secrets)
    try StandardStream.print(text)
  }
}
