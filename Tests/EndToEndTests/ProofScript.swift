import Foundation
import TestSupport
import Testing

/// A script that runs the real programs against each other and fails at the first difference.
///
/// `scripts/test` builds the programs and names their directory in `PUBSUB_TEST_PROGRAMS`: as users
/// get them, with the Swift runtime linked in.
struct ProofScript {
  static let programs = ProcessInfo.processInfo.environment["PUBSUB_TEST_PROGRAMS"]
  /// The directory of programs that load the Swift runtime as libraries.
  static let sharedPrograms =
    ProcessInfo.processInfo.environment["PUBSUB_TEST_SHARED_PROGRAMS"] ?? Self.programs

  /// Whether Python has the package pgserver, which is not built for Python 3.13.
  static let hasPackagedPostgres: Bool = {
    let search = "from importlib.util import find_spec; assert find_spec('pgserver')"
    do {
      try runProgram("python3", "-c", search)
      return true
    } catch { return false }
  }()

  /// Whether `scripts/python-peers` has installed dbt.
  static let hasDbt: Bool = {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let dbt = root.appending(path: ".build-dbt/bin/dbt")
    return FileManager.default.isExecutableFile(atPath: dbt.path)
  }()

  private let path: String

  /// - Parameter folder: among the fixtures.
  init(_ name: String, in folder: String = "end-to-end") {
    self.path =
      URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "Fixtures/\(folder)/\(name)").path
  }

  /// - Parameter sample: arguments that make the proof shorter, without leaving out a kind of
  ///   situation; the script's own defaults apply with `PUBSUB_TEST_FULL` set.
  func run(
    _ arguments: String..., sample: [String] = [], programs: String? = Self.programs
  ) throws {
    let programs = try #require(programs)
    let directory = try TemporaryDirectory()
    try runProgram(
      ["python3", self.path, "--programs", programs, "--work", directory.path] + arguments
        + (ExplorationSize.isFull ? [] : sample))
  }
}
