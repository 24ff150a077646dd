internal import Bytes
import JSON

/// A notification: an incident has begun, or has ended.
struct Notice: Sendable {
  enum Event: Equatable, Sendable {
    case begin(Incident.Kind)
    case end(Incident.Kind)

    var kind: Incident.Kind {
      switch self {
      case .begin(let kind), .end(let kind): kind
      }
    }

    /// A word for programs.
    var word: String {
      switch self {
      case .begin: "begin"
      case .end: "end"
      }
    }
  }

  let event: Event
  let incident: Incident
  let pipeline: String
  /// Absolute path of the pipeline file; empty for a run without a file.
  let file: String
  let host: String
  /// When the call is made, in milliseconds since 1970.
  let time: Int64

  /// The same in each attempt, and in no other notice.
  var id: String {
    "\(self.host)/\(self.pipeline)/\(self.incident.kind.rawValue)/\(self.incident.since)/"
      + self.event.word
  }

  /// A sentence for people.
  var text: String {
    let lasted = ProgressLine.age(milliseconds: self.incident.duration(at: self.time))
    switch self.event {
    case .begin:
      return "\(self.pipeline) \(self.incident.kind.beginning): \(self.incident.finding.message)"
    case .end: return "\(self.pipeline) \(self.incident.kind.ending) after \(lasted)"
    }
  }

  /// The body of a request, and the standard input of a command. All members are always there; what is
  /// not known is null. No text has line ends or control characters.
  ///
  /// - Parameter secrets: what the body must not have.
  func json(hiding secrets: SecretMask) -> JSONValue {
    func line(_ text: String) -> JSONValue {
      .string(String(PrintableText(line: text, hiding: secrets).text.dropLast()))
    }
    let isOver = self.incident.until != nil
    return [
      // Chat services show this member.
      "text": line(self.text),
      "id": line(self.id),
      "event": .string(self.event.word),
      "incident": .string(self.incident.kind.rawValue),
      "pipeline": line(self.pipeline),
      "file": line(self.file),
      "host": line(self.host),
      "time": .string(UTCTime.timestamp(milliseconds: self.time)),
      "since": .string(UTCTime.timestamp(milliseconds: self.incident.since)),
      "until": self.incident.until.map { .string(UTCTime.timestamp(milliseconds: $0)) } ?? nil,
      "duration_ms": isOver ? .integer(self.incident.duration(at: self.time)) : nil,
      "reason": line(self.incident.finding.reason),
      "message": line(self.incident.finding.message),
      "exit_code": self.incident.finding.exitCode.map { .integer($0) } ?? nil,
      "count": .integer(self.incident.count),
      "attempt": .integer(self.incident.attempts),
      "version": .string(Program.version),
    ]
  }

  /// Variables for a command, in addition to its input.
  func variables(hiding secrets: SecretMask) -> [String] {
    let json = self.json(hiding: secrets)
    return ["event", "incident", "pipeline", "text"].map { name in
      "PUBSUB_ETL_\(name.uppercased())=\(json[name]?.string ?? "")"
    }
  }
}

extension Incident.Kind {
  /// The predicate of a sentence about the pipeline.
  var beginning: String {
    switch self {
    case .failing: "fails"
    case .lag: "is late"
    case .positionAge: "may lose its position"
    case .deadLetters: "has dead letters"
    case .drift: "differs from the org"
    }
  }

  var ending: String {
    switch self {
    case .failing: "works again"
    case .lag: "is up to date again"
    case .positionAge: "has a confirmed position again"
    case .deadLetters: "has no more dead letters than allowed again"
    case .drift: "equals the org again"
    }
  }
}
