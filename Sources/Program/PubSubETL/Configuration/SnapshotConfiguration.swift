import HTTPClient
import JSON
import Pipeline

/// Which records are read in addition to those that change, and how (`source.snapshot`).
struct SnapshotConfiguration: Sendable, Equatable {
  enum Mode: String, CaseIterable, Sendable { case initial, never }

  /// Nil: `initial` for a sink whose database knows nothing of it yet, `never` for files.
  var mode: Mode?
  /// API names; empty for those of the topics. Of channels none is known without.
  var objects: [String] = []
  /// Objects read at a time.
  var concurrency = 2
  /// Time after which every reader sees a commit.
  var visibilityWait = Duration.seconds(60)
  /// A snapshot that takes longer starts again.
  var maxDuration = Duration.seconds(48 * 3600)
}

/// What a run does about records that events have left incomplete or wrong (`repair`).
struct RepairConfiguration: Sendable, Equatable {
  enum Mode: String, CaseIterable, Sendable {
    /// They are read again.
    case auto
    case off
  }

  var mode = Mode.auto
  /// Calls of a run; nil: 5 % of the org's daily API requests.
  var maxCalls: Int?
  /// Percent of the org's daily API requests that has to be left.
  var reserve = 20
}

extension ConfigurationReader {
  func repair(_ reader: JSONReader) -> RepairConfiguration {
    var repair = RepairConfiguration()
    repair.mode = reader.choice("mode") ?? repair.mode
    repair.maxCalls = reader.integer("max_calls", in: 1...1_000_000)
    repair.reserve = reader.integer("reserve", in: 0...100) ?? repair.reserve
    reader.finish()
    return repair
  }

  func snapshot(
    _ reader: JSONReader, topics: [SourceConfiguration.Topic], org: OrgConfiguration?
  )
    -> SnapshotConfiguration
  {
    var snapshot = SnapshotConfiguration()
    snapshot.mode = reader.choice("mode")
    snapshot.concurrency = reader.integer("concurrency", in: 1...10) ?? snapshot.concurrency
    let day = Duration.seconds(24 * 3600)
    snapshot.maxDuration =
      reader.duration("max_duration", in: .seconds(60)...day * 7) ?? snapshot.maxDuration
    if let wait = reader.duration("visibility_wait", in: .zero ... .seconds(3600)) {
      snapshot.visibilityWait = wait
      let isLocal =
        org.map {
          $0.endpoint.isLoopback && $0.auth.server?.isLoopback ?? true
        } ?? true
      if wait < .seconds(60), !isLocal {
        reader.report(
          "visibility_wait",
          "expected at least 60s: records that were committed before may be missed; less is for "
            + "loopback addresses only")
      }
    }
    let known = topics.filter { TopicName.hasChanges($0.name) }
    for (path, element) in reader.elements("objects") ?? [] {
      let message: String?
      if let name = element.string, Self.isObjectName(name) {
        let isFromTopic = known.contains { $0.isChannel || TopicName.entity($0.name) == name }
        message =
          snapshot.objects.contains(name)
          ? "the object \(name) is listed twice"
          : isFromTopic ? nil : "no topic brings the changes of \(name)"
        snapshot.objects.append(name)
      } else {
        message = "expected the API name of an object, found \(element.kind)"
      }
      if let message {
        reader.mistakes.append(
          JSONMistake(path: path, position: element.position, message: message))
      }
    }
    if snapshot.mode == .initial, snapshot.objects.isEmpty,
      let channel = known.first(where: \.isChannel)
    {
      reader.report(
        "objects",
        "expected the objects whose records are to be read, because \(channel.name) does not "
          + "list its objects")
    }
    reader.finish()
    return snapshot
  }

  private static func isObjectName(_ name: String) -> Bool {
    guard let first = name.utf8.first, (1...80).contains(name.utf8.count) else { return false }
    return (0x41...0x5A).contains(first & 0xDF)
      && name.utf8.allSatisfy {
        (0x30...0x39).contains($0) || (0x41...0x5A).contains($0 & 0xDF) || $0 == UInt8(ascii: "_")
      }
  }
}

extension SourceConfiguration {
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
