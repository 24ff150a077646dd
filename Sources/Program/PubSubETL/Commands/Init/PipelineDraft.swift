import Cryptography
import JSON
import Pipeline

/// A pipeline that a few answers describe, and the shortest file for it: keys with their defaults are
/// left out.
///
/// `init` writes the file, `run --topic` runs it.
struct PipelineDraft {
  var name: String
  /// At least one.
  var topics: [String]
  /// An org, or the path of a file with one.
  var org: JSONValue
  /// With `type`.
  var sink: JSONValue
  /// May be relative to the pipeline file.
  var stateDirectory: String

  /// What `init` writes: paths are relative to the file.
  init(
    name: String, topics: [String], org: JSONValue, sink: any DraftedSink.Type
  ) {
    (self.name, self.topics, self.org) = (name, topics, org)
    self.sink = Self.sink(sink, sink.draft(pipeline: name))
    self.stateDirectory = "state"
  }

  /// What `run` runs without a file: paths are absolute.
  ///
  /// - Parameters:
  ///   - destination: where the rows go.
  ///   - states: the directory for the state of destinations that have no place for it.
  init(
    topics: [String], org: JSONValue, destination: String, states: String
  ) throws(DestinationMistake) {
    for type in SinkRegistry.draftedTypes {
      guard let draft = try type.draft(destination: destination) else { continue }
      self.name = topics.count == 1 ? TopicName.entity(topics[0]) : "topics"
      (self.topics, self.org) = (topics, org)
      self.sink = Self.sink(type, draft.members)
      // Databases keep the positions. What is here besides, such as dead letters, must not mix.
      let hash = SHA256.hash(of: Array(destination.utf8)).hex.prefix(12)
      self.stateDirectory = Interpolation.literal(
        draft.stateDirectory ?? "\(states)/\(hash)")
      return
    }
    throw DestinationMistake(description: "expected a directory or postgresql://…")
  }

  /// What `tail` shows of a topic. Stores nothing.
  init(watching topic: String, org: JSONValue) {
    (self.name, self.topics, self.org) = (TopicName.entity(topic), [topic], org)
    self.sink = Self.sink(StdoutSettings.self, [])
    self.stateDirectory = Interpolation.literal("\(FilePath.workingDirectory)/state")
  }

  private static func sink(
    _ type: any ConfiguredSink.Type, _ members: [JSONMember]
  ) -> JSONValue {
    JSONValue(.object([JSONMember("type", .string(type.type))] + members))
  }

  var document: JSONValue {
    [
      "version": 1, "name": .string(self.name),
      "source": [
        "type": "salesforce",
        "topic": self.topics.count == 1
          ? .string(self.topics[0]) : .array(self.topics.map { .string($0) }),
        "start": "earliest", "org": self.org,
      ],
      "stages": [["type": "flatten"]], "sinks": [self.sink],
      "checkpoint": ["type": "file", "directory": .string(self.stateDirectory)],
    ]
  }

  /// The pipeline file.
  var text: String { self.document.text(.folded) + "\n" }
}

extension PipelineDraft {
  /// The org of a pipeline without or with an org file.
  ///
  /// - Parameters:
  ///   - file: path of an org file, relative to the directory of the pipeline file.
  ///   - environment: decides which variables the org needs.
  /// - Throws: `ConfigurationError` for a file that cannot be read or is no org file.
  static func org(
    _ file: String?, environment: Environment
  ) throws(ConfigurationError) -> JSONValue {
    guard let file else { return OrgConfiguration.document(of: environment) }
    let path = FilePath.resolve(file, base: FilePath.workingDirectory)
    let document = try PipelineConfiguration.document(path).value
    guard document["auth"] != nil else {
      throw ConfigurationError(mistakes: [
        ConfigurationMistake(
          file: path,
          mistake: JSONMistake(
            path: "", position: .unknown,
            message: "is not an org file: it has no key 'auth'; see pipelines/org.json"))
      ])
    }
    return .string(Interpolation.literal(file))
  }

  /// Why a topic cannot be in a pipeline; nil if it can.
  static func mistake(inTopic topic: String) -> String? {
    guard TopicName.isValid(topic) else {
      return "expected a topic, such as /data/OpportunityChangeEvent"
    }
    return TopicName.hasKnownForm(topic)
      ? nil
      : "the service has no topic of this name; did you mean \(TopicName.known(like: topic))?"
  }
}
