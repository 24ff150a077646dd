/// The number of lines by outcome.
struct PublishSummary: Equatable {
  var published = 0
  var refused = 0
  var unknown = 0
  var notSent = 0
  var valid = 0
  /// The payload bytes of published or valid events.
  var byteCount = 0
  var largestByteCount = 0
  /// The last line whose result was written.
  var lastWritten = 0

  /// Lines that are JSON objects.
  private var objects = 0

  mutating func count(_ line: PublishLine) {
    if line.isObject { self.objects += 1 }
    switch line.outcome {
    case .published: self.published += 1
    case .refused: self.refused += 1
    case .unknown: self.unknown += 1
    case .notSent: self.notSent += 1
    case .valid(let byteCount):
      self.valid += 1
      self.byteCount += byteCount
      self.largestByteCount = max(self.largestByteCount, byteCount)
    case nil: break
    }
  }

  /// The exit code of an otherwise successful process.
  var exitCode: ExitCode {
    if self.unknown + self.notSent > 0 { return .unavailable }
    return self.refused > 0 ? .data : .success
  }

  /// There are lines, but none is one JSON object, so the input has another form.
  var hasOtherForm: Bool { self.refused > 0 && self.objects == 0 }

  /// `3 events published, 1 line refused`
  func text(isDryRun: Bool) -> String {
    var parts = [
      isDryRun
        ? "\(Phrase.count(self.valid, "event")) could be published"
          + (self.valid > 0
            ? " (\(Phrase.count(self.byteCount, "byte")), the largest "
              + "\(Phrase.count(self.largestByteCount, "byte")))" : "")
        : "\(Phrase.count(self.published, "event")) published"
    ]
    if self.refused > 0 { parts.append("\(Phrase.count(self.refused, "line")) refused") }
    if self.unknown > 0 {
      parts.append(
        "\(Phrase.count(self.unknown, "event")) sent but not answered (published or not)")
    }
    if self.notSent > 0 { parts.append("\(Phrase.count(self.notSent, "event")) not sent") }
    return parts.joined(separator: ", ")
  }
}
