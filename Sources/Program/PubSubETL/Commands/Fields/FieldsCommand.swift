import ArgumentParser
import Clocks
import Pipeline

/// `pubsub-etl fields TOPIC`: the columns that a topic's events would have.
struct FieldsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "fields",
    abstract: "Lists the columns of a topic's events, and which of them the login can read.",
    discussion: """
      A line per column, as the stage 'flatten' names it (of the pipeline file, if --org is one): \
      its type, its type in Salesforce, whether \
      the run-as user may read it, and its label. Last come the fields of the object that no event \
      has. Columns that begin with '_' are the same for all topics and are not listed. \
      Subscribes to nothing, so it costs no deliveries.
      With --json, "readable" is null where it is not known, and "blind" is true if the value can \
      change without an event.
      Exit codes: 0 listed; 64 command line; 65 a schema that no event can have; 69 service or org \
      unavailable; 74 standard output; 75 an allowance is used up; 77 login or topic refused; 78 \
      mistakes in the org file, or a variable is not set.

      EXAMPLES:
        pubsub-etl fields /data/OpportunityChangeEvent
        pubsub-etl fields /event/Order_Event__e --org org.json --json
      """)

  @Argument(help: "Topic of one object or platform event; 'pubsub-etl topics' lists them.")
  var topic: String

  @OptionGroup var orgOptions: OrgOptions

  @Flag(help: "Print JSON.")
  var json = false

  func validate() throws {
    guard TopicName.isValid(self.topic) else {
      throw ValidationError("expected a topic, such as /data/OpportunityChangeEvent")
    }
    guard TopicName.hasKnownForm(self.topic) else {
      throw ValidationError(
        "the service has no topic of this name; did you mean \(TopicName.known(like: self.topic))?")
    }
    guard !TopicName.isChannel(self.topic) else {
      throw ValidationError(
        "\(self.topic) is a channel, whose events have the columns of their own topics; name the "
          + "topic of one object or event")
    }
  }

  func run() async throws {
    let (org, secrets) = try self.orgOptions.loadOrExit()
    SignalWatcher.endAtOnce()
    let naming = self.orgOptions.flattenNaming
    let (fields, remark): (TopicFields, String?)
    do {
      (fields, remark) = try await OrgConnection.open(
        org, secrets: secrets, clock: ProcessClock()
      ) { try await TopicFields.read(self.topic, naming: naming, $0) }
    } catch {
      throw RunFailure(error).reported(hiding: secrets)
    }
    if let remark { StandardStream.tell(PrintableText(line: remark, hiding: secrets)) }
    let text =
      self.json
      ? PrintableText(json: fields.json, hiding: secrets)
      : PrintableText(lines: fields.text, hiding: secrets)
    try StandardStream.print(text)
  }
}
