/// Completes the commands of this program in messages, so that they can be copied.
///
/// Sinks and other libraries name a command without the pipeline file, which they do not know:
/// `'run --accept-missing'` becomes `'pubsub-etl run /etc/opps.json --root /data --accept-missing'`.
struct PrintedCommands: Sendable {
  /// The pipeline file and `--root`, as words of a shell.
  let words: String

  private static let commands: Set = [
    "run", "snapshot", "verify", "check", "plan", "repair", "rebuild", "refold", "status",
    "permissions", "doctor",
  ]
  private static let groups = [
    "checkpoint": Set(["show", "set", "restore", "accept-org"]),
    "dead-letters": Set(["list", "show", "retry", "drop", "export"]),
  ]

  func completing(_ text: String) -> String {
    var result = ""
    var rest = text[...]
    while let start = rest.firstIndex(of: "'") {
      result += rest[...start]
      rest = rest[rest.index(after: start)...]
      guard let end = rest.firstIndex(of: "'"), let command = self.complete(rest[..<end]) else {
        continue
      }
      result += command + "'"
      rest = rest[rest.index(after: end)...]
    }
    return result + rest
  }

  /// Nil for anything but a command without its file. A bare `status` is the name of a command.
  private func complete(_ quoted: Substring) -> String? {
    var words = quoted.split(separator: " ", omittingEmptySubsequences: false)[...]
    let isNamed = words.first == "pubsub-etl"
    if isNamed { words.removeFirst() }
    guard let first = words.popFirst() else { return nil }
    var command = String(first)
    if let members = Self.groups[command] {
      guard let member = words.popFirst(), members.contains(String(member)) else { return nil }
      command += " \(member)"
    } else if !Self.commands.contains(command) || !isNamed && words.isEmpty {
      return nil
    }
    if words.first == "FILE" { words.removeFirst() }
    guard words.first.map({ $0.hasPrefix("--") }) ?? true else { return nil }
    return (["pubsub-etl", command, self.words] + words.map(String.init)).joined(separator: " ")
  }
}
