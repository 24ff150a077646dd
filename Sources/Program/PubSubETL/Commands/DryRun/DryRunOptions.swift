import ArgumentParser
import Pipeline

/// The options of `run` that belong to `--dry-run`.
struct DryRunOptions: ParsableArguments {
  /// Events without `--max-events`.
  static let standardCount = 20
  /// Each event counts against the org's daily allowance, and somebody is to read them.
  static let maxCount = 1000

  @Flag(
    help: ArgumentHelp(
      "Show what the pipeline makes of a few real events, before and after each stage. Stores and "
        + "writes nothing. Safe while a run is in progress. Delivered events count against "
        + "the org's daily allowance: \(Self.standardCount) at most, or as many as --max-events "
        + "says, up to \(Self.maxCount)."))
  var dryRun = false

  @Option(
    help: ArgumentHelp(
      "With --dry-run: where to begin: earliest, latest, or after a replay ID in hexadecimal "
        + "digits. Default: after the pipeline's stored position, or where source.start says.",
      valueName: "place"),
    transform: {
      switch $0 {
      case "earliest": return .earliest
      case "latest": return .latest
      default:
        guard let id = ReplayID(hex: $0) else {
          throw ValidationError(
            "expected earliest, latest, or an even number of hexadecimal digits")
        }
        return .after(id)
      }
    })
  var from: StartPoint?

  @Flag(
    help:
      "With --dry-run: show values that stages mask or remove; without it, \(HiddenColumns.text) stands for them."
  )
  var showMasked = false

  @Flag(help: "With --dry-run: print NDJSON on a terminal, too.")
  var json = false

  func validate() throws {
    guard !self.dryRun else { return }
    let given = [
      ("--from", self.from != nil), ("--show-masked", self.showMasked), ("--json", self.json),
    ]
    if let option = given.first(where: \.1)?.0 {
      throw ValidationError("\(option) belongs to --dry-run")
    }
  }

  /// Refuses what says nothing about a dry run.
  func check(with options: RunOptions) throws {
    guard self.dryRun else { return }
    let pointless = [
      ("--follow", options.limits.follow, "a dry run ends after --max-events"),
      ("--report", options.report != nil, "a dry run prints what it has found"),
      ("--accept-reset", options.recovery.acceptReset, "a dry run stores no position; use --from"),
      ("--accept-missing", options.recovery.acceptMissing, "a dry run does not look at the output"),
      ("--take-over", options.recovery.takeOver, "a dry run takes nothing from a running pipeline"),
    ]
    if let (option, _, reason) = pointless.first(where: \.1) {
      throw ValidationError("\(option) cannot be used with --dry-run: \(reason)")
    }
    if let count = options.limits.maxEvents, count > Self.maxCount {
      throw ValidationError(
        "--max-events must be at most \(Self.maxCount) with --dry-run: each event counts against "
          + "the org's daily allowance")
    }
  }
}
