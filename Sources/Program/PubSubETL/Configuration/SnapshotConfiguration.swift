import Bytes
import HTTPClient
import JSON
import Pipeline
import SalesforceREST

/// Which records are read in addition to those that change, and how (`source.snapshot`).
struct SnapshotConfiguration: KeyedObject, Sendable, Equatable {
  enum Mode: String, CaseIterable, Sendable { case initial, never }

  /// Nil: `initial` for a sink whose database knows nothing of it yet, `never` for files.
  var mode: Mode?
  /// API names; empty for those of the topics. Of channels none is known without.
  var objects: [String] = []
  /// SOQL conditions by object; without one all its records are read.
  var conditions: [String: String] = [:]
  var concurrency = 2
  var visibilityWait = Duration.seconds(60)
  var maxDuration = Duration.seconds(48 * 3600)

  static var keys: [Key<Self>] {
    let day = Duration.seconds(24 * 3600)
    return [
      .key(
        "mode", \.mode, .choice(),
        "initial: every record is read once into each PostgreSQL sink and into files; never: only "
          + "changes are exported. By default initial for a PostgreSQL sink whose database does not "
          + "know it yet, never for files."),
      .key(
        "objects", \.objects, .objectNames,
        "API names of the objects whose records are read, in this order; required for channels. By "
          + "default those of the topics.",
        example: ["Account", "Opportunity"]),
      .key(
        "where", \.conditions, .conditions,
        "Conditions in SOQL, by the API name of an object: only records that meet them are read in "
          + "a snapshot. Other records enter the copy with their first change.",
        example: ["Opportunity": "IsClosed = false"]),
      .key(
        "concurrency", \.concurrency, .integer(in: 1...10), "Objects read at a time.", example: 4),
      .key(
        "visibility_wait", \.visibilityWait, .duration(in: .zero ... .seconds(3600)),
        "Time after which every reader sees a commit; less than 60s for loopback addresses only.",
        example: "2m"),
      .key(
        "max_duration", \.maxDuration, .duration(in: .seconds(60)...day * 7),
        "A snapshot that takes longer starts again.", example: "12h"),
    ]
  }

  /// What only the rest of the source tells.
  func check(_ reader: JSONReader, in source: SourceConfiguration) {
    if self.visibilityWait < .seconds(60), !source.org.isLocal {
      reader.report(
        "visibility_wait",
        "expected at least 60s: records that were committed before may be missed; less is for "
          + "loopback addresses only")
    }
    let known = source.topics.filter { TopicName.hasChanges($0.name) }
    for element in reader.elements("objects") ?? [] {
      guard let name = element.value.string,
        !known.contains(where: { $0.isChannel || TopicName.entity($0.name) == name })
      else { continue }
      reader.report(element, "no topic brings the changes of \(name)")
    }
    source.checkObjects(of: "where", self.conditions, reader)
    if self.mode == .initial, self.objects.isEmpty, let channel = known.first(where: \.isChannel) {
      reader.report(
        "objects",
        "expected the objects whose records are to be read, because \(channel.name) does not "
          + "list its objects")
    }
  }
}

/// What a run does about records that events have left incomplete or wrong (`repair`).
struct RepairConfiguration: KeyedObject, Sendable, Equatable {
  enum Mode: String, CaseIterable, Sendable {
    /// They are read again.
    case auto
    case off
  }

  var mode = Mode.auto
  /// Calls of a run; nil: 5 % of the org's daily API requests.
  var maxCalls: Int?
  var reserve = 20

  static var keys: [Key<Self>] {
    [
      .key(
        "mode", \.mode, .choice(),
        "auto: PostgreSQL sinks read them again over REST; off: they stay marked."),
      .key(
        "max_calls", \.maxCalls, .integer(in: 1...1_000_000),
        "API requests of a day, over all runs, at most; by default 5 % of the org's daily requests.",
        example: 5000),
      .key(
        "reserve", \.reserve, .integer(in: 0...100),
        "Percent of the org's daily API requests that has to be left for others.", example: 50),
    ]
  }
}

extension Kind<[String]> {
  static var objectNames: Self {
    Self(.list(of: .text(pattern: "^[A-Za-z][A-Za-z0-9_]*$"), minCount: 1)) {
      reader, name, isRequired in
      guard reader.any(name, required: isRequired) != nil, let elements = reader.elements(name)
      else { return nil }
      if isRequired, elements.isEmpty { reader.report(name, "expected at least one object") }
      var names: [String] = []
      for element in elements {
        guard let name = element.value.string, Self.isObjectName(name) else {
          reader.report(element, "expected the API name of an object, found \(element.value.kind)")
          continue
        }
        if names.contains(name) { reader.report(element, "the object \(name) is listed twice") }
        names.append(name)
      }
      return names
    }
  }

  private static func isObjectName(_ name: String) -> Bool {
    name.utf8.count <= 80 && name.utf8.first?.isLetter == true
      && name.utf8.allSatisfy(\.isWordCharacter)
  }
}

extension Kind<[String: String]> {
  /// SOQL conditions by object.
  static var conditions: Self {
    Self(.map(of: .text(minLength: 1), minCount: 1)) { reader, name, _ in
      guard let object = reader.object(name) else { return nil }
      var conditions: [String: String] = [:]
      for member in object.value.members ?? [] where member.name != "//" {
        guard let condition = object.string(member.name) else { continue }
        if let mistake = SOQL.mistake(inCondition: condition) {
          object.report(member.name, mistake)
        }
        conditions[member.name] = condition
      }
      return conditions
    }
  }
}

extension SourceConfiguration {
  /// The SOQL condition of the records of an object that are read, and its key.
  func scope(of entity: String) -> (condition: String, key: String)? {
    self.subset[entity].map { ($0, "source.subset") }
      ?? self.snapshot.conditions[entity].map { ($0, "source.snapshot.where") }
  }

  fileprivate func checkObjects(
    of key: String, _ conditions: [String: String], _ reader: JSONReader
  ) {
    guard let object = reader.object(key) else { return }
    let known = self.snapshotObjects.map(\.entity)
    for name in conditions.keys.sorted() where !known.contains(name) {
      object.reportUnknown(name, name, called: "object", known: known)
    }
  }

  func checkSubset(_ reader: JSONReader) {
    self.checkObjects(of: "subset", self.subset, reader)
    for name in self.subset.keys.sorted() where self.snapshot.conditions[name] != nil {
      reader.object("subset")?.report(
        name, "\(name) is also in source.snapshot.where; a subset limits what is read, too")
    }
  }

  /// Objects whose records can be read, with the topics that bring their changes.
  var snapshotObjects: [(entity: String, topic: String)] {
    let changes = self.topics.filter { TopicName.hasChanges($0.name) }
    guard !self.snapshot.objects.isEmpty else {
      return changes.filter { !$0.isChannel }.map { (TopicName.entity($0.name), $0.name) }
    }
    return self.snapshot.objects.compactMap { object in
      let own = changes.first { !$0.isChannel && TopicName.entity($0.name) == object }
      return (own ?? changes.first(where: \.isChannel)).map { (object, $0.name) }
    }
  }
}
