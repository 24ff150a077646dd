import Bytes
import HTTPClient
import JSON
import Pipeline
import PubSubAPI

/// Where a topic is read from when no position of it is stored.
enum StartPosition: Sendable, Equatable {
  case earliest
  case latest
  /// The events after this one.
  case replayID(ReplayID)
}

/// Where events come from (`source`).
struct SourceConfiguration: KeyedObject, Sendable {
  struct Topic: Sendable, Equatable {
    var name = ""
    /// Nil: a first run is an error, which the runner raises.
    var start: StartPosition?
  }

  enum InvalidReplayPolicy: String, CaseIterable, Sendable {
    case fail, earliest, latest
    /// The earliest event, and all records are read again.
    case snapshot
  }

  enum RecordIDs: String, CaseIterable, Sendable {
    /// A change of several records is one row per record.
    case rows
    /// It is one row with all of them.
    case array
  }

  var org = OrgConfiguration(endpoint: .unset)
  /// At least one, no name twice.
  var topics: [Topic] = []
  private var start: StartPosition?
  var numRequested = 100
  var onInvalidReplay = InvalidReplayPolicy.fail
  var recordIDs = RecordIDs.rows
  var snapshot = SnapshotConfiguration()
  var lookups = LookupsConfiguration()
  /// Nil: values that change without events stay as of the record's last event or read.
  var refresh: RefreshConfiguration?
  /// SOQL conditions by object: the copy has the records that meet them, and no others.
  var subset: [String: String] = [:]
  /// The subscription whose position the service keeps, too; then there is one topic, without a start.
  var managed: ManagedSubscription.Record?

  static var keys: [Key<Self>] {
    [
      .type("salesforce", called: "source", "The Pub/Sub API of Salesforce."),
      .required(
        "topic", \.topics, .topics, "One or more topics to subscribe to.",
        example: ["/data/AccountChangeEvent", "/data/OpportunityChangeEvent"]),
      .key("start", \.start, .start, Topic.startText, example: "earliest"),
      .key(
        "managed", \.managed,
        .text(
          .text(
            pattern:
              #"^([A-Za-z][A-Za-z0-9_]*|[0-9][A-Za-z0-9]{14}|[0-9][A-Za-z0-9]{17}|.*\$\{.*)$"#),
          orElse:
            "expected the developer name or record ID of a ManagedEventSubscription. A name has letters, "
            + "digits and single underscores, begins with a letter, and has at most 80 characters; an "
            + "ID has 15 or 18 letters and digits and begins with a digit"
        ) { ManagedSubscription.Record($0) },
        "Developer name or record ID of a ManagedEventSubscription of the one topic, read with "
          + "ManagedSubscribe: the service keeps a position, too, and decides where a first run "
          + "begins; the position stored here stays the one that counts.", example: "Orders_Export"),
      .key(
        "num_requested", \.numRequested, .integer(in: 1...100), "Events outstanding per stream.",
        example: 50),
      .key(
        "on_invalid_replay", \.onInvalidReplay, .choice(called: "policy"),
        "What a run does if the service no longer knows the stored position: fail with 65, or "
          + "begin a new epoch with the earliest or latest event; snapshot: with the earliest, and all "
          + "records are read again, so that a PostgreSQL sink misses nothing."),
      .key(
        "record_ids", \.recordIDs, .choice(called: "form"),
        "rows: a change of several records is one row per record; array: one row with all IDs."),
      .key("snapshot", \.snapshot, .object, "Which records are read in addition to changes."),
      .key(
        "subset", \.subset, .conditions,
        "Conditions in SOQL, by the API name of an object: the copy has the records that meet them, "
          + "and no others. A record enters and leaves when a change makes it.",
        example: ["Account": "BillingCountry = 'Germany'"]),
      .key(
        "lookups", \.lookups, .object,
        "Objects without change events, such as UserRole or RecordType, whose records are read "
          + "regularly."),
      .key(
        "refresh", \.refresh, .object,
        "Fields that change without events, such as formulas and roll-ups, whose values are read "
          + "regularly."),
      .required("org", \.org, .org, "The org, or the path of a file with it."),
    ]
  }

  mutating func check(_ reader: JSONReader) {
    for index in self.topics.indices where self.topics[index].start == nil {
      self.topics[index].start = self.start
    }
    if let object = reader.object("snapshot") { self.snapshot.check(object, in: self) }
    self.checkSubset(reader)
    if let object = reader.object("lookups") { self.lookups.check(object, in: self) }
    if let object = reader.object("refresh") { self.refresh?.check(object, in: self) }
    guard self.managed != nil else { return }
    if self.topics.count > 1 {
      reader.report(
        "managed", "a managed subscription is for one topic, found \(self.topics.count) in 'topic'")
    }
    if self.topics.contains(where: { $0.start != nil }) {
      reader.report(
        "managed",
        "the subscription's own position, or its defaultReplay, decides where a first run begins; "
          + "remove 'start', or use it in a first run without 'managed'")
    }
  }
}

extension ServiceAddress {
  /// Where the address of a required key is missing; nothing is sent there.
  static let unset = Self(isSecure: false, host: "localhost", port: 0)
}

extension SourceConfiguration.Topic: KeyedObject {
  fileprivate static let startText =
    "Where a topic begins if no position is stored; required for a first run."

  static var keys: [Key<Self>] {
    [
      .required(
        "topic", \.name, .string(.reference("topic")), "Name of the topic.",
        example: "/event/Order__e"),
      .key("start", \.start, .start, Self.startText, example: "latest"),
    ]
  }
}

extension Kind<[SourceConfiguration.Topic]> {
  fileprivate typealias Topic = SourceConfiguration.Topic

  fileprivate static var topics: Self {
    let topic = JSONSchema.oneOf([.reference("topic"), .object(Topic.declarations)])
    return Self(
      .oneOf([.reference("topic"), .list(of: topic, minCount: 1)]), objects: [Topic.declarations]
    ) { reader, name, isRequired in
      guard let value = reader.any(name, required: isRequired) else { return nil }
      var topics: [Topic] = []
      func add(_ topic: Topic, _ element: (path: String, value: JSONValue)) {
        if !TopicName.isValid(topic.name) {
          reader.report(
            element,
            "expected a topic: /data/<Entity>ChangeEvent, /data/ChangeEvents, "
              + "/data/<Channel>__chn, /event/<Event>__e or /event/<Channel>__chn")
        } else if !TopicName.hasKnownForm(topic.name) {
          reader.report(
            element,
            "the changes of an object are in /data/<Entity>ChangeEvent"
              + (element.value.holdsSubstitution
                ? "" : "; did you mean '\(TopicName.known(like: topic.name))'?"))
        } else if topics.contains(where: { $0.name == topic.name }) {
          reader.report(element, "the topic \(topic.name) is listed twice")
        } else {
          topics.append(topic)
        }
      }
      switch value.content {
      case .string(let text): add(Topic(name: text), (reader.path(of: name), value))
      case .array(let elements):
        if elements.isEmpty { reader.report(name, "expected at least one topic") }
        for element in reader.elements(name) ?? [] {
          switch element.value.content {
          case .string(let text): add(Topic(name: text), element)
          case .object:
            let object = reader.reader(of: element.value, at: element.path)
            guard let topic = object.read(Topic.keys) else { continue }
            add(topic, (object.path(of: "topic"), object.any("topic") ?? element.value))
          default:
            reader.report(
              element,
              "expected a topic or an object with \"topic\", found \(element.value.kind)")
          }
        }
      default: reader.report(name, "expected a topic or a list of topics, found \(value.kind)")
      }
      return topics.isEmpty ? nil : topics
    }
  }
}

extension Kind<StartPosition> {
  private enum Preset: String, CaseIterable { case earliest, latest }

  private struct Position: KeyedObject {
    var start = StartPosition.latest

    static var keys: [Key<Self>] {
      [
        .required(
          "replay_id", \.start,
          .text(
            .text(pattern: #"^(([0-9A-Fa-f]{2})+|.*\$\{.*)$"#),
            orElse: "expected an even number of hexadecimal digits"
          ) { ReplayID(hex: $0).map { .replayID($0) } },
          "Begins after this event; hexadecimal digits.", example: "00000000000c5a3e0000")
      ]
    }
  }

  /// For the schema, since two kinds of objects have it.
  static var startDefinition: JSONSchema {
    .oneOf([
      .choice(of: Preset.self), .reference("variable"), .object(Position.declarations),
    ]).described("Used only when no position is stored yet.")
  }

  fileprivate static var start: Self {
    Self(.reference("start"), objects: [Position.declarations]) { reader, name, _ in
      guard let value = reader.any(name) else { return nil }
      switch value.content {
      case .string:
        return
          switch reader.choice(name, of: Preset.self, others: ["{\"replay_id\": \"<hex>\"}"])
        {
        case .earliest: .earliest
        case .latest: .latest
        case nil: nil
        }
      case .object:
        return reader.object(name)?.read(Position.keys)?.start
      default:
        reader.report(
          name,
          "expected \"earliest\", \"latest\" or {\"replay_id\": \"<hex>\"}, found \(value.kind)")
        return nil
      }
    }
  }
}

extension ManagedSubscription.Record {
  /// Developer names begin with a letter, record IDs with a digit; nil for what is neither.
  init?(_ text: String) {
    guard let first = text.utf8.first else { return nil }
    if first.isDigit {
      guard [15, 18].contains(text.utf8.count), text.utf8.allSatisfy(\.isAlphanumeric) else {
        return nil
      }
      self = .id(text)
      return
    }
    guard first.isLetter, text.utf8.count <= 80, text.utf8.last != UInt8(ascii: "_"),
      text.utf8.allSatisfy(\.isWordCharacter), !text.contains("__")
    else { return nil }
    self = .developerName(text)
  }
}
