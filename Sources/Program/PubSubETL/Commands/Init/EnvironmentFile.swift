internal import Bytes
import JSON

/// The variables that a pipeline file needs, as a file for a shell, cron and systemd
/// (Running.md#one-file-of-variables-for-cron-systemd-and-your-shell).
struct EnvironmentFile: Equatable {
  struct Variable: Equatable {
    var name: String
    /// Empty if somebody has to fill it in.
    var value: String
  }

  var variables: [Variable]

  /// - Parameters:
  ///   - documents: the pipeline file and the org file, before their variables are replaced.
  ///   - environment: has the values. A variable that is not set is left empty if it has no default,
  ///     and left out if it has one.
  init(for documents: [JSONValue], _ environment: Environment) {
    self.variables = []
    for (name, hasDefault) in documents.flatMap(Interpolation.variables) {
      let value = environment.variable(name) ?? ""
      guard !self.variables.contains(where: { $0.name == name }), !(value.isEmpty && hasDefault)
      else { continue }
      // No line of the file can hold a line end.
      let isUsable = value.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F }
      self.variables.append(Variable(name: name, value: isUsable ? value : ""))
    }
  }

  var missing: [String] { self.variables.filter(\.value.isEmpty).map(\.name) }

  var text: String { self.variables.map { "\($0.name)=\(Self.quoted($0.value))\n" }.joined() }

  /// A word of a shell that systemd reads in the same way.
  private static func quoted(_ value: String) -> String {
    let plain = Set("/._-+:,@%".utf8)
    if value.utf8.allSatisfy({ $0.isAlphanumeric || plain.contains($0) }) { return value }
    guard value.contains("'") else { return "'\(value)'" }
    var text = "\""
    for scalar in value.unicodeScalars {
      if "\"\\$`".unicodeScalars.contains(scalar) { text += "\\" }
      text.unicodeScalars.append(scalar)
    }
    return text + "\""
  }
}
