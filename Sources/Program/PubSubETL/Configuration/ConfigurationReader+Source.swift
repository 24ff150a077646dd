import JSON
import Pipeline

extension ConfigurationReader {
  func source(_ reader: JSONReader) -> SourceConfiguration? {
    enum Kind: String, CaseIterable { case salesforce }
    _ = reader.choice("type", of: Kind.self, called: "source", required: true)
    let start = self.start(reader)
    let topics = self.topics(reader, start: start)
    let org = self.org(in: reader)
    let managed = self.managed(reader, topics: topics)
    let numRequested = reader.integer("num_requested", in: 1...100)
    let onInvalidReplay: SourceConfiguration.InvalidReplayPolicy? = reader.choice(
      "on_invalid_replay", called: "policy")
    let recordIDs: SourceConfiguration.RecordIDs? = reader.choice("record_ids", called: "form")
    let snapshot = reader.object("snapshot").map {
      self.snapshot($0, topics: topics, org: org)
    }
    reader.finish()
    guard let org, !topics.isEmpty else { return nil }
    var source = SourceConfiguration(org: org, topics: topics)
    source.numRequested = numRequested ?? source.numRequested
    source.onInvalidReplay = onInvalidReplay ?? source.onInvalidReplay
    source.recordIDs = recordIDs ?? source.recordIDs
    source.snapshot = snapshot ?? source.snapshot
    source.managed = managed
    return source
  }

  private func topics(
    _ reader: JSONReader, start: StartPosition?
  ) -> [SourceConfiguration.Topic] {
    guard let value = reader.any("topic", required: true) else { return [] }
    var topics: [SourceConfiguration.Topic] = []
    func add(_ name: String, _ start: StartPosition?, _ path: String, _ value: JSONValue) {
      var message: String?
      if !TopicName.isValid(name) {
        message = "expected a topic: /data/<Entity>ChangeEvent, /data/ChangeEvents, "
        message? += "/data/<Channel>__chn, /event/<Event>__e or /event/<Channel>__chn"
      } else if topics.contains(where: { $0.name == name }) {
        message = "the topic \(name) is listed twice"
      }
      if let message {
        reader.mistakes.append(
          JSONMistake(path: path, position: value.position, message: message))
      } else {
        topics.append(SourceConfiguration.Topic(name: name, start: start))
      }
    }
    let path = reader.path(of: "topic")
    switch value.content {
    case .string(let name): add(name, start, path, value)
    case .array(let elements):
      if elements.isEmpty { reader.report("topic", "expected at least one topic") }
      for (path, element) in reader.elements("topic") ?? [] {
        switch element.content {
        case .string(let name): add(name, start, path, element)
        case .object:
          let topic = JSONReader(element, path: path, mistakes: reader.mistakes)
          let own = self.start(topic)
          if let name = topic.string("topic", required: true) {
            add(name, own ?? start, topic.path(of: "topic"), topic.any("topic") ?? element)
          }
          topic.finish()
        default:
          reader.mistakes.append(
            JSONMistake(
              path: path, position: element.position,
              message: "expected a topic or an object with \"topic\", found \(element.kind)"))
        }
      }
    default: reader.report("topic", "expected a topic or a list of topics, found \(value.kind)")
    }
    return topics
  }

  private func start(_ reader: JSONReader) -> StartPosition? {
    enum Preset: String, CaseIterable { case earliest, latest }
    guard let value = reader.any("start") else { return nil }
    switch value.content {
    case .string:
      return
        switch reader.choice(
          "start", of: Preset.self, others: ["{\"replay_id\": \"<hex>\"}"])
      {
      case .earliest: .earliest
      case .latest: .latest
      case nil: nil
      }
    case .object:
      guard let position = reader.object("start") else { return nil }
      defer { position.finish() }
      guard let hex = position.string("replay_id", required: true) else { return nil }
      guard let id = ReplayID(hex: hex) else {
        position.report("replay_id", "expected an even number of hexadecimal digits")
        return nil
      }
      return .replayID(id)
    default:
      reader.report(
        "start",
        "expected \"earliest\", \"latest\" or {\"replay_id\": \"<hex>\"}, found \(value.kind)")
      return nil
    }
  }

  // MARK: - Org

  func org(in reader: JSONReader) -> OrgConfiguration? {
    guard let value = reader.any("org", required: true) else { return nil }
    switch value.content {
    case .object: return reader.object("org").flatMap(self.organization)
    case .string:
      guard let file = self.configurationPath(reader, "org"), let shared = self.otherDocument(file)
      else {
        return nil
      }
      _ = shared.string("$schema")
      let org = self.organization(shared)
      self.addMistakes(of: shared, file: file)
      return org
    default:
      reader.report(
        "org", "expected an object or the path of a file with one, found \(value.kind)")
      return nil
    }
  }

  func organization(_ reader: JSONReader) -> OrgConfiguration? {
    let endpoint = self.address(
      reader, "endpoint", reader.string("endpoint") ?? OrgConfiguration.defaultEndpoint)
    let tls = reader.object("tls").map(self.tls) ?? TLSConfiguration()
    let proxy = self.proxy(in: reader)
    let orgID = self.text(reader, "org_id")
    if let orgID, ![15, 18].contains(orgID.utf8.count) || !orgID.hasPrefix("00D") {
      reader.report("org_id", "expected an organization ID: 15 or 18 characters, 00D first")
    }
    let auth = reader.object("auth", required: true).flatMap(self.login)
    reader.finish()
    guard let endpoint, let auth else { return nil }
    return OrgConfiguration(
      endpoint: endpoint, tls: tls, proxy: proxy, orgID: orgID, auth: auth)
  }
}
