import JSON

/// A mistake in the pipeline file, in the file of its org, or in a `--set`.
struct ConfigurationMistake: Sendable, Equatable, CustomStringConvertible {
  /// Absolute path of the file.
  var file: String
  var mistake: JSONMistake

  /// `/etc/etl/opps.json:12:15: /sinks/0/type: unknown sink 'kafka'; known: files`
  var description: String {
    let position = self.mistake.position
    let place = position.line == 0 ? " (--set)" : ":\(position.line):\(position.column)"
    return "\(self.file)\(position == .unknown ? "" : place): \(self.mistake)"
  }
}

/// Everything that is wrong with a pipeline's configuration.
struct ConfigurationError: Error, CustomStringConvertible {
  /// At least one, in the order of the text.
  var mistakes: [ConfigurationMistake]
  /// The secrets of what could be read; they are left out when the mistakes are shown.
  var secrets = SecretMask()
  /// Whether a file could not be read because no descriptor was free: the file may be right.
  var isTemporary = false

  var exitCode: ExitCode { self.isTemporary ? .tryAgain : .configuration }

  /// A line per mistake.
  var description: String { self.mistakes.map(\.description).joined(separator: "\n") }
}

extension ConfigurationError {
  /// The mistakes of a document that is in no file.
  ///
  /// - Parameter place: what is shown in place of a file.
  func placed(_ place: String) -> Self {
    var error = self
    for index in error.mistakes.indices {
      error.mistakes[index].file = place
      error.mistakes[index].mistake.position = .unknown
    }
    return error
  }
}

extension JSONValue.Position {
  /// The position of a mistake that concerns a file as a whole.
  static let unknown = JSONValue.Position(line: -1, column: 0)
}

extension ConfigurationError {
  /// A line per mistake and one with their number.
  var printable: PrintableText {
    let count = self.mistakes.count
    let lines = self.mistakes.map {
      PrintableText(line: $0.description, hiding: self.secrets)
    }
    let end = PrintableText(
      line: "\(count) \(count == 1 ? "mistake" : "mistakes")", hiding: self.secrets)
    return lines.reversed().reduce(end) { $1 + $0 }
  }
}
