import ArgumentParser
import JSON

/// A word where a subcommand is expected, which names none. The argument parser alone would call it an
/// unexpected argument, and its options unknown.
enum UnknownSubcommand {
  /// What is wrong with the first such word; nil when every word names a subcommand, up to the first
  /// command that has none.
  static func message(
    in arguments: [String], of root: any ParsableCommand.Type
  ) -> String? {
    var subcommands = root.configuration.subcommands
    var names = [root._commandName]
    for argument in arguments {
      guard !subcommands.isEmpty, !argument.hasPrefix("-"), argument != "help" else { return nil }
      let next = subcommands.first {
        $0._commandName == argument || $0.configuration.aliases.contains(argument)
      }
      guard let next else {
        let known = subcommands.filter { $0.configuration.shouldDisplay }.map { $0._commandName }
        let command = names.joined(separator: " ")
        let hint = nearest(to: argument, among: known).map { " Did you mean '\($0)'?" } ?? ""
        return "Error: Unknown subcommand '\(argument)' of '\(command)'.\(hint) "
          + "Known: \(known.joined(separator: ", ")). See '\(command) --help'."
      }
      subcommands = next.configuration.subcommands
      names.append(argument)
    }
    return nil
  }
}
