import JSON

/// When a run ends, and with which exit code (`run`).
struct RunConfiguration: KeyedObject, Sendable, Equatable {
  enum Until: Sendable, Equatable {
    case caughtUp
    case forever
    case events(Int)
    case duration(Duration)
  }

  enum IfRunning: String, CaseIterable, Sendable { case fail, skip, wait }

  /// Kinds of `attention` in the report.
  enum Attention: String, CaseIterable, Sendable {
    case gaps, holes
    case deadLetters = "dead_letters"
  }

  var until = Until.caughtUp
  var quiet = Duration.seconds(15)
  var ifRunning = IfRunning.fail
  var failOn: Set<Attention> = []
  /// 1 or 2.
  var threads = 2

  static var keys: [Key<Self>] {
    [
      .key(
        "until", \.until, .until,
        "When a run ends: caught_up: once it has exported what is available; forever: on a "
          + "signal; or after a number of events or a time.", default: "caught_up",
        example: ["duration": "10m"]),
      .key(
        "quiet", \.quiet, .duration(in: .seconds(1) ... .seconds(3600)),
        "Silence after which a topic is treated as caught up.", example: "30s"),
      .key(
        "if_running", \.ifRunning, .choice(),
        "What a run does if another one is running the pipeline: fail with 75, skip with 0, or "
          + "wait."),
      .key(
        "fail_on", \.failOn, .attention,
        "Kinds of attention that end the run with exit code 65.", default: [],
        example: ["gaps", "dead_letters"]),
      .key(
        "threads", \.threads, .integer(in: 1...2),
        "Threads that process events. 2: each sink of files compresses and writes on a thread of its "
          + "own. 1: the thread that decodes events does it. Connections have other threads.",
        example: 1),
    ]
  }

  /// What was asked for by a command of its own is done, or its exit code says that it was not.
  mutating func mustNotSkip() {
    if self.ifRunning == .skip { self.ifRunning = .fail }
  }
}

extension Kind<RunConfiguration.Until> {
  fileprivate enum Word: String, CaseIterable {
    case caughtUp = "caught_up"
    case forever
  }

  fileprivate struct Limit: KeyedObject {
    var events: Int?
    var duration: Duration?

    static var keys: [Key<Self>] {
      [
        .key(
          "events", \.events, .integer(in: 1 ... .max), "Number of events.", example: 10_000),
        .key(
          "duration", \.duration, .duration(in: .seconds(1) ... .seconds(366 * 86_400)),
          "Time since the start.", example: "10m"),
      ]
    }
  }

  fileprivate static var until: Self {
    Self(
      .oneOf(
        [.choice(of: Word.self), .reference("variable")]
          + Limit.declarations.map { .object([$0.alone]) }),
      objects: Limit.declarations.map { [$0.alone] }
    ) { reader, name, _ in
      guard let value = reader.any(name) else { return nil }
      switch value.content {
      case .string:
        return
          switch reader.choice(
            name, of: Word.self, others: ["{\"events\": N}", "{\"duration\": \"10m\"}"])
        {
        case .caughtUp: .caughtUp
        case .forever: .forever
        case nil: nil
        }
      case .object:
        guard let object = reader.object(name), let limit = object.read(Limit.keys) else {
          return nil
        }
        if object.has("events") == object.has("duration") {
          reader.report(name, "expected either \"events\" or \"duration\"")
        }
        return limit.events.map { .events($0) } ?? limit.duration.map { .duration($0) }
      default:
        reader.report(
          name,
          "expected \"caught_up\", \"forever\", {\"events\": N} or {\"duration\": \"10m\"}, found \(value.kind)"
        )
        return nil
      }
    }
  }
}

extension Kind<Set<RunConfiguration.Attention>> {
  fileprivate static var attention: Self {
    Self(.list(of: .choice(of: RunConfiguration.Attention.self))) { reader, name, _ in
      guard let kinds = reader.elements(name) else { return nil }
      let known = RunConfiguration.Attention.allCases.map(\.rawValue).joined(separator: ", ")
      return Set(
        kinds.compactMap { kind in
          let attention = kind.value.string.flatMap(RunConfiguration.Attention.init)
          if attention == nil {
            reader.report(kind, "unknown kind \(kind.value.quoted); known: \(known)")
          }
          return attention
        })
    }
  }
}
