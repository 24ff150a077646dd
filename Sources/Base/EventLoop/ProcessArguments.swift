internal import CArguments

/// The arguments of this process, as the C library passes them.
///
/// `CommandLine.arguments` is empty when a preloaded library has set a variable of the environment before
/// the program began, or when `/proc` is not mounted.
package enum ProcessArguments {
  /// The arguments after the program's name; nil if the process was started without even a name, for
  /// which Linux puts an empty one.
  package static var afterName: [String]? {
    let all = (0..<c_argument_count()).map { String(cString: c_argument($0)) }
    return all.isEmpty || all == [""] ? nil : Array(all.dropFirst())
  }

  /// The message for a process without a name.
  package static let missing =
    "the program was started without arguments, not even its name (argv[0])"
}
