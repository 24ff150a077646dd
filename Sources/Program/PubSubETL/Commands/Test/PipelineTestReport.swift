import JSON

/// The verdicts of a file, for people.
struct PipelineTestReport {
  let file: PipelineTestFile
  /// The name of the file as the user gave it.
  let name: String
  let isColored: Bool

  /// A line for the file, and for each case that has failed what differs.
  func text(_ verdicts: [PipelineTestVerdict]) -> [PrintableText] {
    let failed = verdicts.filter { !$0.hasPassed }
    let count = Phrase.count(verdicts.count, "case")
    var lines: [PrintableText] = []
    for verdict in failed {
      lines.append(
        self.line(
          "\(self.name):\(verdict.test.position.line): \(verdict.test.name)", .red))
      for finding in verdict.findings {
        lines.append(self.line("  \(finding.place):"))
        lines += finding.differences.flatMap(self.text)
      }
    }
    lines.append(
      failed.isEmpty
        ? self.line("\(self.name): \(count) passed", .green)
        : self.line("\(self.name): \(failed.count) of \(count) failed", .red))
    return lines
  }

  private func text(_ difference: LineDifference) -> [PrintableText] {
    let member = difference.member.isEmpty ? "" : "\(difference.member): "
    func side(_ sign: String, _ value: JSONValue?, _ color: PrintableText.Color) -> PrintableText? {
      value.map { self.line("    \(sign) \(member)\($0.text(.spaced))", color) }
    }
    return [
      side("expected", difference.expected, .green), side("found   ", difference.found, .red),
    ].compactMap { $0 }
  }

  private func line(_ text: String, _ color: PrintableText.Color? = nil) -> PrintableText {
    let line = PrintableText(line: text, hiding: self.file.configuration.secrets)
    guard self.isColored, let color else { return line }
    return line.colored(color)
  }
}
