import DurableFiles
import PubSubAPI
import PubSubSource
import SimulatedOrg

/// Events in the memory that a response has them in, and decoders for them.
struct BenchmarkInput {
  struct Event {
    var id: Range<Int>
    var replayID: Range<Int>
    var payload: Range<Int>
  }

  /// At most 100 consecutive events of one schema.
  struct Run {
    /// Index into `decoders`.
    var decoder: Int
    var events: [Event] = []
  }

  private(set) var message: [UInt8] = []
  private(set) var runs: [Run] = []
  private(set) var decoders: [AvroEventDecoder] = []
  private var decoderOfSchema: [String: Int] = [:]

  var count: Int { self.runs.reduce(0) { $0 + $1.events.count } }

  init(_ options: EventBenchmark) throws {
    if let path = options.payloads {
      try self.read(path, options)
    } else {
      try self.generate(options)
    }
  }

  private mutating func read(_ path: String, _ options: EventBenchmark) throws {
    let schema = try Self.contents(of: options.schema ?? "")
    let decoder = try self.decoder(
      "schema", json: String(decoding: schema, as: UTF8.self), options)
    let file = try Self.contents(of: path)
    var offset = 0
    while offset + 4 <= file.count, self.count < options.events {
      let length = file[offset..<offset + 4].reversed().reduce(0) { $0 << 8 | Int($1) }
      let end = min(offset + 4 + length, file.count)
      self.add(
        id: Self.eventID(self.count), replayID: Self.replayID(self.count),
        payload: Array(file[offset + 4..<end]), decoder: decoder)
      offset = end
    }
  }

  private static func contents(of path: String) throws -> [UInt8] {
    let file = try OpenFile(path, [], on: SystemFileSystem())
    return try file.content(byteCount: file.status().byteCount)
  }

  private mutating func generate(_ options: EventBenchmark) throws {
    var configuration = SimulatedOrgConfiguration()
    configuration.events = options.events
    configuration.topics = [options.topic]
    // Fixed, so that each run has the same events.
    let org = try Org(configuration: configuration, epoch: 1_800_000_000_000) { error in
      preconditionFailure("\(error)")
    }
    let log = try org.log.log(options.topic, tenant: "")
    for (index, entry) in log.entries.enumerated() {
      // The stored bytes are a field of the message in which the service delivers the event.
      var event = Array(org.log.bytes(of: entry))
      WireWriter.appendField(2, Self.replayID(index), to: &event)
      var response: [UInt8] = []
      WireWriter.appendField(1, event, to: &response)
      let view = try FetchResponseView(parsing: response)
      let fields = view.events[0]
      let schemaID = view.string(fields.schemaID)
      let decoder = try self.decoder(
        schemaID, json: org.log.schema(schemaID).json, options)
      self.add(
        id: Array(view[fields.eventID]), replayID: Array(view[fields.replayID]),
        payload: Array(view[fields.payload]), decoder: decoder)
    }
  }

  private mutating func decoder(
    _ schemaID: String, json: String, _ options: EventBenchmark
  ) throws -> Int {
    if let known = self.decoderOfSchema[schemaID] { return known }
    self.decoders.append(
      try AvroEventDecoder(json: json, schemaID: schemaID, topic: options.topic))
    self.decoderOfSchema[schemaID] = self.decoders.count - 1
    return self.decoders.count - 1
  }

  private mutating func add(id: [UInt8], replayID: [UInt8], payload: [UInt8], decoder: Int) {
    if self.runs.last?.decoder != decoder || self.runs[self.runs.count - 1].events.count == 100 {
      self.runs.append(Run(decoder: decoder))
    }
    self.runs[self.runs.count - 1].events.append(
      Event(
        id: self.append(id), replayID: self.append(replayID), payload: self.append(payload)))
  }

  private mutating func append(_ bytes: [UInt8]) -> Range<Int> {
    self.message += bytes
    return self.message.count - bytes.count..<self.message.count
  }

  private static func replayID(_ index: Int) -> [UInt8] {
    [0, 0, 0, 0, 0, 0] + (0..<4).reversed().map { UInt8(truncatingIfNeeded: index >> ($0 * 8)) }
  }

  private static func eventID(_ index: Int) -> [UInt8] {
    let digits = String(index, radix: 16)
    return Array(
      "c9f1a3e2-5b7d-4c68-9a41-\(String(repeating: "0", count: 12 - digits.count))\(digits)".utf8)
  }
}
