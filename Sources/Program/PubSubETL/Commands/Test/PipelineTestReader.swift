import JSON
import PubSubSource

/// Reads the cases of a test file and makes payloads of their events.
final class PipelineTestReader {
  private struct SchemaKey: Hashable {
    var json: String
    var topic: String
  }

  private let configuration: PipelineConfiguration
  /// Directory of the test file.
  private let base: String
  private let mistakes: JSONMistakes
  private var encoders: [SchemaKey: EventEncoder] = [:]

  init(_ configuration: PipelineConfiguration, base: String, mistakes: JSONMistakes) {
    self.configuration = configuration
    self.base = base
    self.mistakes = mistakes
  }

  /// What events have that do not say otherwise.
  private struct Defaults {
    var schema: String?
    var topic: String?
  }

  func cases(_ reader: JSONReader) -> [PipelineTestCase] {
    let topics = self.configuration.source.topics
    var defaults = Defaults(topic: topics.count == 1 ? topics[0].name : nil)
    self.read(reader, into: &defaults)
    let match: LineMatch = reader.choice("match", called: "comparison") ?? .fields
    let readers = reader.objects("cases", required: true) ?? []
    return readers.enumerated().map { index, reader in
      self.testCase(reader, number: index + 1, defaults, match)
    }
  }

  private func testCase(
    _ reader: JSONReader, number: Int, _ defaults: Defaults, _ match: LineMatch
  ) -> PipelineTestCase {
    defer { reader.finish() }
    var defaults = defaults
    self.read(reader, into: &defaults)
    let events = (reader.objects("events", required: true) ?? []).enumerated().map {
      self.event($1, number: $0 + 1, defaults)
    }
    return PipelineTestCase(
      name: reader.string("name") ?? "case \(number)", path: reader.path,
      position: reader.value.position,
      match: reader.choice("match", called: "comparison") ?? match,
      events: events.compactMap { $0 }, expected: self.expected(reader),
      deadLetters: (reader.objects("dead_letters") ?? []).compactMap {
        self.letter($0, eventCount: events.count)
      })
  }

  private func expected(_ reader: JSONReader) -> [(sink: String, lines: [JSONValue])]? {
    guard let value = reader.any("expect") else { return nil }
    let sinks = JSONReader(value, path: reader.path(of: "expect"), mistakes: self.mistakes)
    let expected = self.configuration.sinks.compactMap { sink in
      sinks.elements(sink.name).map { elements in
        for element in elements where element.value.members == nil {
          self.report(
            element.path, element.value, "expected an object, found \(element.value.kind)")
        }
        return (sink: sink.name, lines: elements.map(\.value))
      }
    }
    sinks.finish()
    return expected
  }

  private func letter(_ reader: JSONReader, eventCount: Int) -> ExpectedLetter? {
    defer { reader.finish() }
    let event = reader.integer("event", in: 1...max(1, eventCount), required: true)
    let sink = reader.string("sink")
    if let sink, !self.configuration.sinks.contains(where: { $0.name == sink }) {
      reader.reportUnknown("sink", sink, known: self.configuration.sinks.map(\.name))
    }
    let reason = reader.string("reason", required: true)
    guard let event, let reason else { return nil }
    return ExpectedLetter(event: event, sink: sink, reason: reason)
  }

  // MARK: Events

  private func event(
    _ reader: JSONReader, number: Int, _ defaults: Defaults
  ) -> PipelineTestEvent? {
    defer { reader.finish() }
    var own = defaults
    self.read(reader, into: &own)
    let payload = reader.any("payload", required: true)
    let eventID = reader.string("event_id") ?? "event-\(number)"
    guard let payload else { return nil }
    guard let schema = own.schema else {
      if defaults.schema == nil, !reader.has("schema") {
        reader.report("schema", "is required here, in the case, or in the file")
      }
      return nil
    }
    guard let topic = own.topic else {
      reader.report(
        "topic",
        "is required: the pipeline has several; one of "
          + self.configuration.source.topics.map(\.name).joined(separator: ", "))
      return nil
    }
    guard let encoder = self.encoder(schema, topic, reader) else { return nil }
    return PipelineTestEvent(
      topic: topic, schema: schema, schemaID: encoder.schemaID,
      payload: encoder.payload(payload, path: reader.path(of: "payload"), mistakes: self.mistakes),
      eventID: eventID, replayID: withUnsafeBytes(of: UInt64(number).bigEndian) { Array($0) })
  }

  private func encoder(_ json: String, _ topic: String, _ reader: JSONReader) -> EventEncoder? {
    let key = SchemaKey(json: json, topic: topic)
    if let known = self.encoders[key] { return known }
    do {
      let encoder = try EventEncoder(json: json, topic: topic)
      // An event cannot be decoded either: said here, where the schema is named.
      _ = try AvroEventDecoder(json: json, schemaID: encoder.schemaID, topic: topic)
      self.encoders[key] = encoder
      return encoder
    } catch {
      reader.report("schema", "\(error.reason)")
      return nil
    }
  }

  /// Members that a file, a case and an event may have.
  private func read(_ reader: JSONReader, into defaults: inout Defaults) {
    if let schema = reader.any("schema") {
      defaults.schema = schema.string == nil ? schema.text() : self.text(ofFile: reader)
    }
    if let topic = reader.string("topic") {
      let known = self.configuration.source.topics.map(\.name)
      if !known.contains(topic) {
        reader.reportUnknown("topic", topic, called: "topic", known: known)
      }
      defaults.topic = topic
    }
  }

  private func text(ofFile reader: JSONReader) -> String? {
    guard let name = reader.string("schema") else { return nil }
    let path = FilePath.resolve(name, base: self.base)
    do throws(TextFile.ReadError) {
      return String(decoding: try TextFile.read(path), as: UTF8.self)
    } catch {
      reader.report("schema", "the file \(path) \(error)")
      return nil
    }
  }

  private func report(_ path: String, _ value: JSONValue, _ message: String) {
    self.mistakes.append(JSONMistake(path: path, position: value.position, message: message))
  }
}
