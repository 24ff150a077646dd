import ArgumentParser
internal import Bytes
internal import Checkpoint
import FileSink
import JSON
import Pipeline

/// The dead letters of a pipeline, and the state of each. Read without a lock.
struct DeadLetterBook {
  let ledger: DeadLetterLedger
  private let archive: DeadLetterArchive
  private let directory: String
  private let pipeline: String
  private let state: SinkState?

  init(_ configuration: PipelineConfiguration) throws {
    // First: a file that a run finishes meanwhile is then found under its final name.
    let document = try FileCheckpointStore.peek(configuration.statePaths)
    self.state = document?.deadLetters
    self.directory = configuration.deadLetter.directory
    self.pipeline = configuration.name
    self.ledger = try DeadLetterLedger(
      directory: self.directory, pipeline: self.pipeline, state: self.state?.json)
    self.archive = DeadLetterArchive(
      directory: self.directory, pipeline: self.pipeline, org: document?.org)
  }

  /// Lends each letter that the selection means.
  ///
  /// - Returns: files that could not be read, for `loss`.
  @discardableResult
  func visit(
    _ selection: DeadLetterSelection,
    _ body: (StoredDeadLetter, DeadLetterLedger.Outcome?) throws -> Void
  ) throws -> [DeadLetterCursor.DamagedFile] {
    try self.archive.visit(openFiles: self.state?.json) { letter in
      let outcome = self.ledger[letter]
      if selection.includes(letter, outcome) { try body(letter, outcome) }
    }
  }

  /// The failure with which a command ends after it has done what the readable letters allow; nil
  /// if no waiting letter is lost.
  ///
  /// - Parameter damaged: the files that could not be read.
  func loss(_ damaged: [DeadLetterCursor.DamagedFile]) throws -> RunFailure? {
    let output = try OutputState.readDeadLetters(
      directory: self.directory, pipeline: self.pipeline, state: self.state?.json)
    let faults = output.faults + damaged.filter { !$0.hasOtherSize }.map(\.fault)
    guard !faults.isEmpty else { return nil }
    return RunFailure(
      output.isElsewhere ? .otherDirectory : .lostOutput,
      "dead letters: \(faults.joined(separator: "; ")): \(output.remedy)")
  }

  /// The number of letters that were dropped because their file was lost.
  ///
  /// - Parameter selection: 0 if it asks for what only the letters show.
  func lostAndDroppedCount(_ selection: DeadLetterSelection) throws -> Int {
    guard selection.ids == nil, selection.reason == nil, selection.since == nil else { return 0 }
    return try self.archive.droppedFiles().reduce(0) { count, file in
      guard let topic = file.range?.topic,
        selection.entity.map({ $0 == TopicName.entity(topic) }) ?? true
      else { return count }
      return count + Int(file.count)
    }
  }

  /// All letters, some at a time.
  func cursor() throws -> DeadLetterCursor {
    try self.archive.cursor(openFiles: self.state?.json)
  }

  /// Which objects and kinds there are, for somebody whose choice includes no letter; nil if the choice
  /// has no filter or no letter exists.
  func remark(onEmpty selection: DeadLetterSelection) throws -> String? {
    guard selection.entity != nil || selection.reason != nil || selection.since != nil else {
      return nil
    }
    var (entities, kinds, newest) = (Set<String>(), Set<String>(), "")
    var all = DeadLetterSelection()
    all.includesHandled = selection.includesHandled
    try self.visit(all) { letter, _ in
      entities.insert(TopicName.entity(letter.letter.topic))
      kinds.insert(letter.kind)
      newest = max(newest, letter.time)
    }
    guard !entities.isEmpty else { return nil }
    return "no letter matches the filters; there are letters of "
      + "\(entities.sorted().joined(separator: ", ")), of the kinds "
      + "\(kinds.sorted().joined(separator: ", ")), the newest of \(newest)"
  }
}

/// Which dead letters a command means.
struct DeadLetterSelection {
  /// Nil for all.
  var ids: Set<StoredDeadLetter.ID>?
  var entity: String?
  /// A kind, or a part of the reason.
  var reason: String?
  /// `2026-02-17T04:03:15.000Z`
  var since: String?
  /// Also those that were retried or dropped.
  var includesHandled = false

  func includes(_ letter: StoredDeadLetter, _ outcome: DeadLetterLedger.Outcome?) -> Bool {
    if outcome != nil, !self.includesHandled { return false }
    if let ids, !ids.contains(letter.id) { return false }
    if let entity, TopicName.entity(letter.letter.topic) != entity { return false }
    if let reason, letter.kind != reason, !letter.letter.reason.contains(reason) { return false }
    if let since, letter.time < since { return false }
    return true
  }
}

/// Options that choose among dead letters.
struct DeadLetterFilterOptions: ParsableArguments {
  @Option(
    help:
      "Only letters of one object or event, for example Opportunity; of a channel, the channel's name."
  )
  var entity: String?

  @Option(
    help: ArgumentHelp(
      "Only letters of one kind (undecodable, unprocessable, refused), or whose reason has a text.",
      valueName: "text"))
  var reason: String?

  @Option(
    help: ArgumentHelp(
      "Only letters written since a time in UTC (2026-02-17 or 2026-02-17T04:03:15Z), or within "
        + "the last 24h, 90m and so on.", valueName: "time"),
    transform: { text in
      if let age = JSONReader.duration(text) {
        let milliseconds = Int64(age / .milliseconds(1))
        return UTCTime.timestamp(milliseconds: max(0, UTCTime.now() - milliseconds))
      }
      let digits = Array("0000-00-00T00:00:00Z".utf8)
      let isDate = text.utf8.count == 10
      guard isDate || text.utf8.count == digits.count,
        zip(text.utf8, digits).allSatisfy({ byte, model in
          model == UInt8(ascii: "0") ? (0x30...0x39).contains(byte) : byte == model
        })
      else {
        throw ValidationError("expected a time such as 24h, 2026-02-17 or 2026-02-17T04:03:15Z")
      }
      // As the letters have it, with milliseconds: so that texts compare as times do.
      return isDate ? text : String(text.dropLast()) + ".000Z"
    })
  var since: String?

  var selection: DeadLetterSelection {
    DeadLetterSelection(entity: self.entity, reason: self.reason, since: self.since)
  }
}

extension StoredDeadLetter {
  /// Everything but the payload.
  func head(_ outcome: DeadLetterLedger.Outcome?) -> JSONValue {
    var members = [
      JSONMember("id", .string(self.id.description)),
      JSONMember("state", .string(outcome?.rawValue ?? "waiting")),
    ]
    let hidden: Set = ["payload", "sealed", "kind"]
    members += (self.json.members ?? []).filter { !hidden.contains($0.name) }
    members.append(JSONMember("kind", .string(self.kind)))
    members.append(
      JSONMember(
        "payload_bytes", self.payloadByteCount.map { .integer($0) } ?? nil))
    return JSONValue(.object(members))
  }
}
