internal import JSON
package import SimulatedOrg

/// A fault as JSON describes it, in a file of faults, after `--fault` and in the control interface.
///
///     {"at": {"event": 120}, "what": "service.unavailable", "topic": "/data/…", "times": 1}
///
/// See the page of the simulator for what is known.
package enum ScriptedFault: Sendable, Equatable {
  case service(Fault)
  case rest(RESTFault)

  var isOfREST: Bool {
    if case .rest = self { true } else { false }
  }

  /// The calls of the service and the login that a fault can hit.
  private static let methods = [
    "Subscribe", "ManagedSubscribe", "GetTopic", "GetSchema", "Publish", "PublishStream", "Login",
  ]

  /// What a fault can do to a call of the service.
  private enum Effect: String, CaseIterable {
    case status, reset, goaway, drop, stall, truncate, undecodable
    case noTrailers = "no_trailers"
    case lostAnswer = "lost_answer"
  }

  /// What a fault can do to a call of the REST API.
  private enum RESTEffect: String, CaseIterable {
    case status, html, cut, drop, drip
    case rowCount = "row_count"
    case jobFailed = "job_failed"
    case jobAborted = "job_aborted"
    case jobStuck = "job_stuck"
    case jobVanished = "job_vanished"
  }

  /// Reads one fault or an array of them.
  static func read(_ json: String) throws -> [ScriptedFault] {
    let document = try JSONDocument.parse(json, name: "fault")
    let mistakes = JSONMistakes()
    let elements = document.array?.enumerated().map { ("/\($0.offset)", $0.element) }
    let faults = (elements ?? [("", document)]).enumerated().compactMap { index, element in
      Self.read(
        JSONReader(element.1, path: element.0, mistakes: mistakes), seed: UInt64(index + 1))
    }
    try JSONDocument.check(mistakes, name: "fault")
    return faults
  }

  /// - Parameter seed: for a probability without a seed of its own.
  static func read(_ reader: JSONReader, seed: UInt64) -> ScriptedFault? {
    defer { reader.finish() }
    // `action` is what the control interface called it first.
    let key = reader.has("action") && !reader.has("what") ? "action" : "what"
    let what = reader.string(key) ?? "status"
    let method = reader.string("method") ?? "Subscribe"
    let moment = FaultMoment.read(reader, seed: seed)
    var times = reader.integer("times", in: 1 ... .max) ?? 1
    // A part of the day is a state of the service, not a single event.
    if case .timeOfDay? = moment, !reader.has("times") { times = .max }
    if let call = RESTFault.Call(rawValue: method) {
      if case .event? = moment {
        reader.report("at", "events are delivered by Subscribe; method is \(method)")
      }
      guard let action = Self.restAction(reader, key, what, call), let moment else { return nil }
      return .rest(RESTFault(action, call: call, times: times, moment: moment))
    }
    guard Self.methods.contains(method) else {
      reader.reportUnknown(
        "method", method, called: "method",
        known: Self.methods + RESTFault.Call.allCases.map(\.rawValue))
      // So that they do not count as unknown, too.
      for name in Self.otherKeys { _ = reader.any(name) }
      return nil
    }
    let action = Self.action(reader, key, what, method)
    let topic = reader.string("topic")
    let afterEvents = reader.integer("after_events", in: 0...1_000_000_000)
    for (name, isGiven) in [("topic", topic != nil), ("after_events", afterEvents != nil)]
    where isGiven && !method.hasSuffix("Subscribe") {
      reader.report(name, "is for the method Subscribe; method is \(method)")
    }
    if case .event? = moment, !method.hasSuffix("Subscribe") {
      reader.report("at", "events are delivered by Subscribe; method is \(method)")
    }
    if case .event? = moment, afterEvents != nil {
      reader.report("after_events", "the event is named by at")
    }
    if let topic, !Topic.all.contains(where: { $0.name == topic }) {
      reader.reportUnknown("topic", topic, called: "topic", known: Topic.all.map(\.name))
    }
    guard let action, let moment else { return nil }
    return .service(
      Fault(
        action, method: method, topic: topic, afterEvents: afterEvents ?? 0, times: times,
        moment: moment))
  }

  private static let otherKeys = [
    "status", "error_code", "message", "http2_code", "topic", "after_events",
  ]

  private static func action(
    _ reader: JSONReader, _ key: String, _ what: String, _ method: String
  ) -> Fault.Action? {
    let isLogin = method == "Login"
    let status = reader.integer("status", in: isLogin ? 400...599 : 0...16)
    let code = reader.string("error_code")
    let message = reader.string("message")
    if let known = ServiceErrorCode.named(what), !isLogin {
      if code != nil { reader.report("error_code", "the error code is named by \(key)") }
      Self.refuse(reader, ["http2_code"], for: what)
      return .status(
        status ?? known.status.rawValue, code: known.code, message: message ?? known.message)
    }
    guard let effect = Effect(rawValue: what), !isLogin || effect == .status else {
      reader.reportUnknown(
        key, what, called: "fault",
        known: isLogin
          ? ["status"] : Effect.allCases.map(\.rawValue) + ServiceErrorCode.all.map(\.code))
      _ = reader.any("http2_code")
      return nil
    }
    let http2Code = reader.integer("http2_code", in: 0...Int(UInt32.max))
    if effect != .status { Self.refuse(reader, ["status", "error_code", "message"], for: what) }
    if effect != .reset { Self.refuse(reader, ["http2_code"], for: what) }
    switch effect {
    case .status:
      return .status(
        status ?? (isLogin ? 503 : 14), code: code,
        message: message ?? "The service is unavailable. Try again later.")
    case .reset: return .reset(http2Code.map { UInt32($0) } ?? 2)
    case .goaway: return .goAway
    case .drop: return .drop
    case .noTrailers: return .endWithoutTrailers
    case .stall: return .stall
    case .truncate: return .truncate
    case .undecodable:
      if !method.hasSuffix("Subscribe") { reader.report(key, "events are delivered by Subscribe") }
      return .damage
    case .lostAnswer:
      if !method.hasPrefix("Publish") {
        reader.report(key, "is for the methods Publish and PublishStream")
      }
      return .loseAnswer
    }
  }

  private static func restAction(
    _ reader: JSONReader, _ key: String, _ what: String, _ call: RESTFault.Call
  ) -> RESTFault.Action? {
    // A proxy's page may come with a status that says all is well.
    let least = what == RESTEffect.html.rawValue ? 200 : 400
    let status = reader.integer("status", in: least...599)
    let code = reader.string("error_code")
    let message = reader.string("message")
    let pages = reader.integer("after_events", in: 0...1_000_000)
    let effects = RESTEffect.allCases.filter {
      call == .createJob || !$0.rawValue.hasPrefix("job_")
    }
    guard let effect = RESTEffect(rawValue: what), effects.contains(effect) else {
      reader.reportUnknown(key, what, called: "fault", known: effects.map(\.rawValue))
      return nil
    }
    switch effect {
    case .status: break
    case .html: Self.refuse(reader, ["error_code", "message"], for: what)
    case .jobFailed: Self.refuse(reader, ["status", "error_code"], for: what)
    default: Self.refuse(reader, ["status", "error_code", "message"], for: what)
    }
    if effect != .jobVanished { Self.refuse(reader, ["after_events"], for: what) }
    switch effect {
    case .status:
      return .status(
        status ?? 500, code: code ?? "UNKNOWN_EXCEPTION",
        message: message ?? "An unexpected error occurred.")
    case .html: return .html(status ?? 503)
    case .cut: return .cut
    case .drop: return .drop
    case .drip: return .drip
    case .rowCount: return .rowCount
    case .jobFailed: return .job(.failed(message: message))
    case .jobAborted: return .job(.aborted)
    case .jobStuck: return .job(.stuck)
    case .jobVanished: return .job(.vanished(afterPages: pages ?? 0))
    }
  }

  private static func refuse(_ reader: JSONReader, _ names: [String], for what: String) {
    for name in names where reader.any(name) != nil {
      reader.report(name, "has no meaning for \(what)")
    }
  }
}

extension FaultMoment {
  private static let choices = ["event", "call", "probability", "time_of_day"]

  /// The member `at`; nil for a mistake.
  fileprivate static func read(_ reader: JSONReader, seed: UInt64) -> FaultMoment? {
    guard reader.any("at") != nil else { return .next }
    guard let at = reader.object("at") else { return nil }
    defer { at.finish() }
    let event = at.integer("event", in: 1...1_000_000_000)
    let call = at.integer("call", in: 1...1_000_000_000)
    let share = at.fraction("probability")
    let ownSeed = at.integer("seed", in: 0 ... .max)
    let part = at.string("time_of_day")
    let given = Self.choices.filter(at.has)
    guard given.count == 1 else {
      reader.report("at", "expected one of \(Self.choices.joined(separator: ", "))")
      return nil
    }
    if ownSeed != nil, share == nil { at.report("seed", "belongs to probability") }
    if let event { return .event(event) }
    if let call { return .call(call) }
    if let share { return .probability(share, seed: ownSeed.map { UInt64($0) } ?? seed) }
    guard let part else { return nil }
    guard let minutes = Self.minutes(part) else {
      at.report("time_of_day", "expected a part of the day in UTC, such as \"02:00-02:30\"")
      return nil
    }
    return .timeOfDay(from: minutes.from, to: minutes.to)
  }

  private static func minutes(_ text: String) -> (from: Int, to: Int)? {
    let ends = text.split(separator: "-", omittingEmptySubsequences: false).map { end -> Int? in
      let parts = end.split(separator: ":", omittingEmptySubsequences: false)
      guard parts.count == 2, parts.allSatisfy({ $0.utf8.count == 2 }), let hour = Int(parts[0]),
        let minute = Int(parts[1]), (0...23).contains(hour), (0...59).contains(minute)
      else { return nil }
      return hour * 60 + minute
    }
    guard ends.count == 2, let from = ends[0], let to = ends[1], from != to else { return nil }
    return (from, to)
  }
}
