import Checkpoint
import Glibc

extension ReportDestination {
  /// The files that a report may replace.
  enum Earlier {
    /// A report of a run.
    case run
    /// A page of `report --html`.
    case page

    fileprivate func has(_ text: [UInt8]) -> Bool {
      switch self {
      case .run: RunReport.isReport(text)
      case .page: text.starts(with: ReportPage.beginning.description.utf8)
      }
    }

    fileprivate var words: String {
      switch self {
      case .run: "report of a run"
      case .page: "page of 'report --html'"
      }
    }
  }

  /// Checks that the report replaces nothing that the pipeline reads or keeps, and no other file
  /// than an earlier report.
  ///
  /// - Throws: a sentence that names the file.
  func check(
    against configuration: PipelineConfiguration, mayReplace earlier: Earlier = .run
  ) throws(Failure) {
    guard case .file(let path) = self else { return }
    let place = Self.place(of: path)
    let name = place.lastName
    let role: String
    if configuration.inputFiles.contains(where: { Self.place(of: $0) == place }) {
      role = "the pipeline is configured by it"
    } else if Self.isInside(place, configuration.statePaths.schemas) {
      role = "it is in the directory of stored schemas"
    } else if Self.isInside(place, configuration.checkpoint.directory), Self.isState(name) {
      role = "the state of a pipeline is stored in it"
    } else if let directory = configuration.outputDirectories.first(where: {
      Self.isInside(place, $0)
    }), Self.isOutput(name) {
      role = "\(directory) holds exported files"
    } else if let obstacle = Self.obstacle(to: path, mayReplace: earlier) {
      role = obstacle
    } else {
      return
    }
    throw Failure(
      description: "the report cannot be written to \(path), because \(role); name another file")
  }

  /// No report is longer.
  private static let maxByteCount = 64 << 20

  /// Why a file may not be replaced; nil for an earlier report, an empty file and a missing one.
  private static func obstacle(to path: String, mayReplace earlier: Earlier) -> String? {
    guard access(path, F_OK) == 0 else { return nil }
    do throws(TextFile.ReadError) {
      let text = try TextFile.read(path, limit: Self.maxByteCount)
      // Locks are empty files, and their holders know them by their inodes.
      let isLock = path.lastName.hasPrefix(".") || path.lastName.hasSuffix(".lock")
      if text.isEmpty, !isLock { return nil }
      if earlier.has(text) { return nil }
      return "it exists and is not a \(earlier.words)"
    } catch {
      return "it exists and \(error)"
    }
  }

  /// The path without links, also of a file that does not exist.
  private static func place(of path: String) -> String {
    if let real = FilePath.real(path) { return real }
    let directory = FilePath.directory(of: path)
    return "\(FilePath.real(directory) ?? directory)/\(path.lastName)"
  }

  private static func isInside(_ place: String, _ directory: String) -> Bool {
    place.hasPrefix("\(FilePath.real(directory) ?? directory)/")
  }

  /// Whether some pipeline with this state directory may have a file of that name.
  private static func isState(_ name: String) -> Bool {
    let paths = StatePaths(directory: "", pipeline: "")
    return name.hasPrefix(".")
      || [
        paths.checkpoint, paths.lock, paths.lastRun, paths.waiting, paths.identity, paths.journal,
        paths.runs, paths.incidents, paths.verdict,
      ].contains { name.hasSuffix($0.lastName) }
  }

  /// Whether a files sink or the dead letters may have a file of that name.
  private static func isOutput(_ name: String) -> Bool {
    name.hasPrefix("_") || name.hasPrefix(".") || name.hasSuffix(".ndjson.zst")
  }
}

extension PipelineConfiguration {
  /// Where files with a manifest are.
  fileprivate var outputDirectories: [String] {
    self.fileSinks.map(\.directory) + [self.deadLetter.directory]
  }
}

extension String {
  fileprivate var lastName: String {
    guard let slash = self.utf8.lastIndex(of: UInt8(ascii: "/")) else { return self }
    return String(self[self.utf8.index(after: slash)...])
  }
}
