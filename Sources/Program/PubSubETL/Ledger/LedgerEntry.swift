import Bytes
import JSON
import Pipeline

/// A line of the ledger of runs.
enum LedgerEntry: Sendable, Equatable {
  case began(RunBeginning)
  case run(RunRecord)
  case verify(VerifyRecord)

  /// - Returns: nil for what no version of this program has written, and for lines of later ones that
  ///   this one does not know.
  init?(json: JSONValue) {
    let entry: LedgerEntry? =
      switch json["kind"]?.string {
      case "began": RunBeginning(json: json).map { .began($0) }
      case "run": RunRecord(json: json).map { .run($0) }
      case "verify": VerifyRecord(json: json).map { .verify($0) }
      default: nil
      }
    guard let entry else { return nil }
    self = entry
  }

  /// All members are always present.
  var json: JSONValue {
    switch self {
    case .began(let beginning): beginning.json(kind: "began")
    case .run(let record): record.json
    case .verify(let record): record.json
    }
  }
}

extension RunBeginning {
  fileprivate init?(json: JSONValue) {
    guard let id = json["run_id"]?.string.flatMap(RunID.init(text:)),
      let version = json.name("version"),
      let command = json["command"]?.string.flatMap(Command.init),
      let processID = json["pid"]?.integer.flatMap(Int32.init(exactly:)), processID > 0,
      let beganAt = json.time("began")
    else { return nil }
    self.init(
      id: id, version: version, command: command, processID: processID, beganAt: beganAt)
  }

  fileprivate func json(kind: String, _ members: [JSONMember] = []) -> JSONValue {
    JSONValue(
      .object(
        [
          JSONMember("kind", .string(kind)), JSONMember("run_id", .string(self.id.text)),
          JSONMember("version", .string(self.version)),
          JSONMember("command", .string(self.command.rawValue)),
          JSONMember("pid", .integer(self.processID)),
          JSONMember("began", .time(self.beganAt)),
        ] + members))
  }
}

extension RunRecord {
  fileprivate init?(json: JSONValue) {
    guard let beginning = RunBeginning(json: json), let endedAt = json.time("ended"),
      let exitCode = json["exit_code"]?.integer, (0...255).contains(exitCode),
      let reason = json.name("reason"),
      let retries = json.list("retries", limit: Self.maxRetryCount, Retry.init(json:)),
      let topics = json.list("topics", limit: Self.maxTopicCount, Topic.init(json:)),
      let otherTopics = json.count("other_topics"),
      let sinks = json.list("sinks", limit: Self.maxSinkCount, Sink.init(json:))
    else { return nil }
    self.init(
      beginning: beginning, endedAt: endedAt, exitCode: Int32(exitCode), reason: reason,
      message: json["message"]?.string?.cut(to: Self.maxMessageLength), retries: retries,
      topics: topics, otherTopics: otherTopics, sinks: sinks)
    for (name, path) in Counts.members {
      guard let count = json.count(name) else { return nil }
      self.counts[keyPath: path] = count
    }
    if let allowance = json["allowance"], allowance.content != .null {
      guard let max = allowance.count("max"), let remaining = allowance["remaining"]?.integer,
        (-Counts.maxCount...Counts.maxCount).contains(remaining)
      else { return nil }
      self.allowance = OrgAllowance(max: max, remaining: remaining)
    }
  }

  fileprivate var json: JSONValue {
    let counts = Counts.members.map { name, path in
      JSONMember(name, .integer(self.counts[keyPath: path]))
    }
    return self.beginning.json(
      kind: "run",
      [
        JSONMember("ended", .time(self.endedAt)),
        JSONMember("exit_code", .integer(self.exitCode)),
        JSONMember("reason", .string(self.reason)), JSONMember("message", .text(self.message)),
      ] + counts + [
        JSONMember(
          "allowance",
          self.allowance.map { ["max": .integer($0.max), "remaining": .integer($0.remaining)] }
            ?? nil),
        JSONMember(
          "retries",
          .array(
            self.retries.map { retry in
              [
                "place": .string(retry.place), "code": .string(retry.code),
                "count": .integer(retry.count),
              ]
            })),
        JSONMember("topics", .array(self.topics.map(\.json))),
        JSONMember("other_topics", .integer(self.otherTopics)),
        JSONMember("sinks", .array(self.sinks.map(\.json))),
      ])
  }
}

extension RunRecord.Retry {
  fileprivate init?(json: JSONValue) {
    guard let place = json.name("place"), let code = json.name("code"),
      let count = json.count("count")
    else { return nil }
    self.init(place: place, code: code, count: count)
  }
}

extension RunRecord.Topic {
  fileprivate init?(json: JSONValue) {
    guard let name = json.name("topic"), let events = json.count("events"),
      let rows = json.count("rows")
    else { return nil }
    self.init(
      name: name, events: events, rows: rows, begin: json["begin"].flatMap(StreamPlace.init(json:)),
      end: json["end"].flatMap(StreamPlace.init(json:)), lag: json.count("lag_ms"),
      completeThrough: json.time("complete_through"))
  }

  fileprivate var json: JSONValue {
    [
      "topic": .string(self.name), "events": .integer(self.events),
      "rows": .integer(self.rows), "begin": self.begin?.json ?? nil,
      "end": self.end?.json ?? nil, "lag_ms": self.lag.map { .integer($0) } ?? nil,
      "complete_through": self.completeThrough.map { .time($0) } ?? nil,
    ]
  }
}

extension RunRecord.Sink {
  fileprivate init?(json: JSONValue) {
    guard let name = json.name("name"), let type = json.name("type"),
      let target = json.name("target"), let rows = json.count("rows"),
      let rowsRead = json.count("rows_read"), let bytes = json.count("bytes"),
      let files = json.count("files")
    else { return nil }
    self.init(
      name: name, type: type, target: target, rows: rows, rowsRead: rowsRead, bytes: bytes,
      files: files)
  }

  fileprivate var json: JSONValue {
    [
      "name": .string(self.name), "type": .string(self.type), "target": .string(self.target),
      "rows": .integer(self.rows), "rows_read": .integer(self.rowsRead),
      "bytes": .integer(self.bytes), "files": .integer(self.files),
    ]
  }
}

extension VerifyRecord {
  fileprivate init?(json: JSONValue) {
    guard let version = json.name("version"), let beganAt = json.time("began"),
      let endedAt = json.time("ended"), let verdict = json.name("verdict"),
      let compares = json.name("compares"),
      let tables = json.list("tables", limit: Self.maxTableCount, Table.init(json:))
    else { return nil }
    self.init(
      version: version, beganAt: beganAt, endedAt: endedAt, verdict: verdict, compares: compares,
      tables: tables)
  }

  fileprivate var json: JSONValue {
    [
      "kind": "verify", "version": .string(self.version), "began": .time(self.beganAt),
      "ended": .time(self.endedAt), "verdict": .string(self.verdict),
      "compares": .string(self.compares),
      "tables": .array(
        self.tables.map { table in
          [
            "sink": .string(table.sink), "object": .string(table.object),
            "verdict": .string(table.verdict), "total": .integer(table.total),
            "drift": .integer(table.drift),
          ]
        }),
    ]
  }
}

extension VerifyRecord.Table {
  fileprivate init?(json: JSONValue) {
    guard let sink = json.name("sink"), let object = json.name("object"),
      let verdict = json.name("verdict"), let total = json.count("total"),
      let drift = json.count("drift")
    else { return nil }
    self.init(sink: sink, object: object, verdict: verdict, total: total, drift: drift)
  }
}

extension StreamPlace {
  fileprivate init?(json: JSONValue) {
    guard let epoch = json["epoch"]?.integer.flatMap(Int32.init(exactly:)), epoch >= 0,
      let ordinal = json["ordinal"]?.integer, ordinal >= 0
    else { return nil }
    self.init(epoch: Int(epoch), ordinal: ordinal)
  }

  fileprivate var json: JSONValue {
    ["epoch": .integer(self.epoch), "ordinal": .integer(self.ordinal)]
  }
}

extension JSONValue {
  fileprivate static func time(_ milliseconds: Int64) -> JSONValue {
    .string(UTCTime.timestamp(milliseconds: milliseconds))
  }

  fileprivate static func text(_ text: String?) -> JSONValue { text.map { .string($0) } ?? nil }

  fileprivate func time(_ name: String) -> Int64? {
    guard var text = self[name]?.string else { return nil }
    return text.withUTF8 { UTCTime.timestamp(UnsafeRawBufferPointer($0)) }
  }

  fileprivate func name(_ name: String) -> String? {
    self[name]?.string?.cut(to: RunRecord.maxNameLength)
  }

  fileprivate func count(_ name: String) -> Int64? {
    guard let count = self[name]?.integer, (0...RunRecord.Counts.maxCount).contains(count) else {
      return nil
    }
    return count
  }

  /// - Returns: nil unless every element can be read.
  fileprivate func list<Element>(
    _ name: String, limit: Int, _ read: (JSONValue) -> Element?
  ) -> [Element]? {
    guard let values = self[name]?.array, values.count <= limit else { return nil }
    let elements = values.compactMap(read)
    return elements.count == values.count ? elements : nil
  }
}
