import JSON
import Pipeline

/// Prints changes on standard output: as blocks for a person, or as the lines that files would have.
final class TailOutput {
  enum Form: Equatable {
    case json
    case text(isColored: Bool)

    /// Text on a terminal, unless JSON is asked for.
    init(json: Bool) {
      self =
        StandardStream.output.isTerminal && !json
        ? .text(isColored: StandardStream.output.isColored()) : .json
    }
  }

  private let form: Form
  private let secrets: SecretMask
  private let now: () -> Int64
  private let write: (PrintableText) throws(RunFailure) -> Void
  private var known = KnownValues()

  /// - Parameters:
  ///   - now: milliseconds since 1970.
  ///   - write: where text goes; replaced in tests.
  init(
    _ form: Form, hiding secrets: SecretMask, now: @escaping () -> Int64,
    write: @escaping (PrintableText) throws(RunFailure) -> Void = StandardStream.print
  ) {
    self.form = form
    self.secrets = secrets
    self.now = now
    self.write = write
  }

  /// Takes note of values, so that a later change can be shown with what was there before.
  func learn(_ line: JSONValue) -> TailChange { TailChange(line, known: &self.known) }

  /// - Throws: `RunFailure` if nobody can read it.
  func show(_ line: JSONValue) throws(RunFailure) {
    try self.show(line, self.learn(line))
  }

  /// - Parameter change: the line as a change.
  func show(_ line: JSONValue, _ change: TailChange) throws(RunFailure) {
    guard case .text(let isColored) = self.form else {
      return try self.write(PrintableText(json: line, .compact, hiding: self.secrets))
    }
    var block = PrintableText.empty
    for line in change.lines(now: self.now()) {
      let text = PrintableText(line: line.text, hiding: self.secrets)
      block = block + (isColored ? line.color.map { text.colored($0) } ?? text : text)
    }
    try self.write(block)
  }
}

/// Takes the place of a sink and shows what the sink would get.
final class TailSink: CheckpointedSink {
  let name: String
  private let preview: LinesPreview
  private let output: TailOutput

  init(name: String, _ output: TailOutput) {
    self.name = name
    self.preview = LinesPreview()
    self.output = output
  }

  func write(_ batch: RecordBatch) throws {
    for index in batch.events.indices {
      for line in try self.preview.lines(ofEvent: index, of: batch) { try self.output.show(line) }
    }
  }

  func recover(from state: JSONValue?) {}
  func flush(finish: Bool) -> JSONValue { nil }
  func committed() -> Bool { false }
}

/// Takes the place of the dead letters: reports events that cannot be shown.
final class TailLetters: DeadLetterStore {
  private(set) var count = 0
  private let report: (String) -> Void

  init(_ report: @escaping (String) -> Void) { self.report = report }

  func append(_ letter: DeadLetter) {
    self.count += 1
    self.report(
      "\(letter.topic): an event cannot be shown: \(letter.reason)"
        + (letter.fieldPath.map { ", field \($0)" } ?? ""))
  }

  func recover(from state: JSONValue?) {}
  func flush(finish: Bool) -> JSONValue { nil }
  func committed() -> Bool { false }
  var isDue: Bool { false }
  var pendingByteCount: Int { 0 }
}
