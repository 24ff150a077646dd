internal import DurableFiles
internal import Glibc
internal import JSON

/// A date folder that is being exchanged for one with other files: the durable record of it.
///
/// The new folder is prepared under a hidden name that no pattern for finished files matches:
/// `Opportunity/.opps.compact/commit_date=2026-02-17`, or `.opps.dead.compact/export_date=2026-02-17`
/// for dead letters. It has the new files, and links to all files that stay. The record is written when the new folder is durable, and removed when the exchange is
/// durable and the manifest has the new files. So whoever finds the record completes the exchange or
/// takes it back.
struct FolderSwitch: Equatable {
  /// Relative: `Opportunity/commit_date=2026-02-17`.
  var folder: String
  /// The lines of the manifest for the new files, at least one.
  var lines: [JSONValue]

  static func path(
    in directory: String, pipeline: String, _ kind: SegmentKind = .records
  ) -> String {
    "\(directory)/\(Self.stagingName(pipeline: pipeline, kind)).json"
  }

  /// The record before it has its name.
  static func temporaryPath(
    in directory: String, pipeline: String, _ kind: SegmentKind = .records
  ) -> String {
    "\(Self.path(in: directory, pipeline: pipeline, kind)).tmp"
  }

  /// The folder that holds new folders before an exchange, and old ones after it. It is in the folder
  /// of the object; of dead letters, in their directory.
  static func stagingName(pipeline: String, _ kind: SegmentKind = .records) -> String {
    ".\(SegmentName.pipelinePart(pipeline))\(kind == .records ? "" : ".dead").compact"
  }

  /// Relative path of the hidden folder.
  static func staging(
    of folder: String, pipeline: String, _ kind: SegmentKind = .records
  ) -> String {
    precondition(Self.isFolder(folder, kind), "\(folder) is not a date folder")
    var parts = folder.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }
    parts.insert(Self.stagingName(pipeline: pipeline, kind), at: parts.count - 1)
    return parts.joined(separator: "/")
  }

  /// The record; nil if no exchange is in progress.
  ///
  /// - Throws: `FileSinkError.inconsistent` for a record that this program does not write; `.io`.
  static func read(
    in directory: String, pipeline: String, _ kind: SegmentKind = .records,
    on fileSystem: any FileSystem
  ) throws(FileSinkError) -> FolderSwitch? {
    let path = Self.path(in: directory, pipeline: pipeline, kind)
    let bytes: [UInt8]
    do throws(FileSystemError) {
      guard let byteCount = try fileSystem.size(of: path) else { return nil }
      bytes = try OpenFile(path, [], on: fileSystem)
        .content(byteCount: min(byteCount, Self.maxByteCount))
    } catch {
      // Removed in the meantime.
      if error.code == ENOENT { return nil }
      throw FileSinkError(error)
    }
    let limits = JSONLimits(byteCount: Self.maxByteCount)
    guard let json = try? JSONValue(parsing: bytes, limits: limits),
      let own = FolderSwitch(json: json, pipeline: pipeline, kind)
    else {
      throw FileSinkError(
        .inconsistent,
        "\(path) is damaged: it says which folder 'compact' or 'erase' was exchanging. Put back a copy of it, or "
          + "remove it and run 'verify --checksums'")
    }
    return own
  }

  /// A folder of 10,000 files has a record of about a megabyte.
  private static let maxByteCount = 64 << 20

  var json: JSONValue { ["folder": .string(self.folder), "files": .array(self.lines)] }

  init(folder: String, lines: [JSONValue]) {
    self.folder = folder
    self.lines = lines
  }

  /// nil for anything that `json` does not produce, above all names outside the folder.
  private init?(json: JSONValue, pipeline: String, _ kind: SegmentKind) {
    guard let folder = json["folder"]?.string, let lines = json["files"]?.array, !lines.isEmpty
    else { return nil }
    guard Self.isFolder(folder, kind) else { return nil }
    let matcher = SegmentName.Matcher(kind: kind, pipeline: pipeline)
    for line in lines {
      let names = Manifest.replaced(by: line) + [line["name"]?.string ?? ""]
      guard names.count > 1,
        names.allSatisfy({ name in
          guard let base = Self.base(name, in: folder) else { return false }
          return matcher.ownership(of: base) == .finished
        })
      else { return nil }
    }
    self.init(folder: folder, lines: lines)
  }

  /// Whether a relative path is that of a date folder: two names that are not hidden, or one for dead
  /// letters.
  static func isFolder(_ path: String, _ kind: SegmentKind = .records) -> Bool {
    let parts = path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    return parts.count == (kind == .records ? 2 : 1)
      && parts.allSatisfy { $0.first != nil && $0.first != UInt8(ascii: ".") }
  }

  /// The name of a file without its folder; nil if it is in another one. Compares bytes, because a
  /// combining character after a slash would hide it.
  static func base(_ name: String, in folder: String) -> String? {
    let head = Array("\(folder)/".utf8)
    guard name.utf8.starts(with: head) else { return nil }
    let base = name.utf8.dropFirst(head.count)
    return base.contains(UInt8(ascii: "/")) ? nil : String(Substring(base))
  }

  var names: [String] { self.lines.compactMap { $0["name"]?.string } }
  var replaced: [String] { self.lines.flatMap { Manifest.replaced(by: $0) } }

  /// Whether the folders have changed places.
  ///
  /// The new files are in the hidden folder before that and the old ones in the visible one, which
  /// holds even if a loader removes new files.
  func isMade(
    in directory: String, pipeline: String, _ kind: SegmentKind = .records,
    on fileSystem: any FileSystem
  ) throws(FileSinkError) -> Bool {
    let staging = Self.staging(of: self.folder, pipeline: pipeline, kind)
    do throws(FileSystemError) {
      for name in self.names {
        let base = Self.base(name, in: self.folder) ?? ""
        if try fileSystem.status(at: "\(directory)/\(staging)/\(base)") != nil { return false }
      }
      for name in self.replaced
      where try fileSystem.status(at: "\(directory)/\(name)") != nil { return false }
      return true
    } catch {
      throw FileSinkError(error)
    }
  }

  /// Makes the record durable.
  func store(
    in directory: String, pipeline: String, _ kind: SegmentKind = .records,
    on fileSystem: any FileSystem
  ) throws(FileSystemError) {
    let path = Self.temporaryPath(in: directory, pipeline: pipeline, kind)
    let text = Array((self.json.text() + "\n").utf8)
    let file = try OpenFile(temporary: path, on: fileSystem)
    try file.write(text)
    try file.synchronize()
    try file.checkIntact(byteCount: text.count)
    try fileSystem.rename(path, to: Self.path(in: directory, pipeline: pipeline, kind))
    try fileSystem.synchronizeDirectory(directory)
  }
}
