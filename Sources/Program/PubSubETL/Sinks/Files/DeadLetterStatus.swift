internal import Checkpoint
import FileSink
import JSON

/// How the dead letters of a pipeline stand. They are files as those of a files sink are.
struct DeadLetterStatus {
  var directory: String
  var files: Int64 = 0
  var events: Int64 = 0
  var openFiles = 0
  /// Letters that were sent again, and those that were discarded.
  var retried = 0
  var dropped = 0
  /// Letters that nothing has been done about, of the files that are there.
  var waiting: Int64 = 0
  /// How many may wait before somebody has to look at them; nil for any number.
  var tolerated: Int?
  /// How the finished files are.
  var output = OutputState()
  /// How all finished files are, if that was asked for.
  var verification: OutputVerification?

  init(directory: String) { self.directory = directory }

  init(_ reading: SinkStatusReading) throws {
    let pipeline = reading.configuration.name
    let org = reading.checkpoint?.org
    self.directory = reading.configuration.deadLetter.directory
    self.tolerated =
      reading.configuration.run.failOn.contains(.deadLetters)
      ? 0 : reading.configuration.deadLetter.max
    var isWhole = true
    try ExportedFile.visit(.deadLetters, in: self.directory, pipeline: pipeline) { file in
      guard org == nil || file.org == org else { return }
      isWhole = isWhole && FilePath.exists("\(self.directory)/\(file.name)")
      self.files += 1
      self.events += file.events
    }
    let ledger = try DeadLetterLedger(
      directory: self.directory, pipeline: pipeline, state: reading.checkpoint?.deadLetters?.json)
    self.retried = ledger.count(.retried)
    self.dropped = ledger.count(.dropped)
    for file in try DeadLetterArchive(directory: self.directory, pipeline: pipeline, org: org)
      .droppedFiles()
    {
      self.dropped += Int(file.count)
    }
    self.output = try OutputState.readDeadLetters(
      directory: self.directory, pipeline: pipeline, state: reading.checkpoint?.deadLetters?.json)
    self.waiting = max(0, self.events - Int64(self.retried + self.dropped))
    if !isWhole, self.output.faults.isEmpty {
      // Letters in files that were removed were handled, or dropped with --accept-missing.
      self.waiting = 0
      try DeadLetterBook(reading.configuration).visit(DeadLetterSelection()) { _, _ in
        self.waiting += 1
      }
    }
    self.openFiles = reading.checkpoint?.deadLetters?.openFileCount ?? 0
    if reading.verifies {
      // `output` has those whose letters were not handled.
      self.verification = try OutputVerification.read(
        [.deadLetters], in: self.directory, pipeline: pipeline, ignoringMissing: true)
    }
  }

  var problems: [PipelineStatus.Problem] {
    var problems = self.output.problems(of: "dead letters")
    problems += self.verification?.problems(of: "dead letters") ?? []
    if let tolerated, self.waiting > Int64(tolerated), let remark {
      problems.append(
        PipelineStatus.Problem(
          .data, "dead_letters",
          tolerated > 0 ? "\(remark), more than dead_letter.max (\(tolerated))" : remark))
    }
    return problems
  }

  /// That letters wait, and what to do; nil when none does.
  var remark: String? {
    guard self.waiting > 0 else { return nil }
    let letters = "\(Phrase.count(Int(self.waiting), "dead letter"))"
    return "\(letters) \(self.waiting == 1 ? "is" : "are") waiting ('dead-letters list' shows why, "
      + "'dead-letters retry --all' or 'dead-letters drop --all' settles them)"
  }

  /// The first stands behind the label.
  var lines: [String] {
    guard self.events > 0 || self.openFiles > 0 else { return ["none"] }
    let first =
      "\(Phrase.count(Int(self.events), "event")) in \(Phrase.count(Int(self.files), "file")) "
      + "(\(ProgressLine.grouped(self.waiting)) waiting, \(self.retried) retried, "
      + "\(self.dropped) dropped), \(self.openFiles) open, in \(self.directory)"
    guard let verification = self.verification, self.events > 0 else { return [first] }
    return [first, verification.line]
  }

  var json: JSONValue {
    [
      "directory": .string(self.directory),
      "events": .integer(self.events), "files": .integer(self.files),
      "waiting": .integer(self.waiting), "retried": .integer(self.retried),
      "dropped": .integer(self.dropped),
      "open_files": .integer(self.openFiles),
      "verified": self.verification?.json ?? nil,
    ]
  }
}
