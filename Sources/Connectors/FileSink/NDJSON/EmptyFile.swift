internal import DurableFiles
internal import Pipeline

/// A file without lines that the pattern of an entity's view matches beside the files of the entity,
/// so that there is always one: DuckDB refuses patterns that nothing matches.
///
/// It is `.pportunity/commit_date=1970-01-01/.none.ndjson.zst` for `Opportunity`. Programs that read
/// the directory do not see it, because both names are hidden; the pattern `[O.]pportunity` does.
struct EmptyFile {
  /// Absolute path of the sink's directory.
  let directory: String
  let fileSystem: any FileSystem

  /// The pattern for the directory of an entity, whose first character is a letter or a digit.
  static func pattern(of entityDirectory: String) -> String {
    "[\(entityDirectory.prefix(1)).]\(entityDirectory.dropFirst())"
  }

  /// An entity's folders are dates under one key, and DuckDB does not read those of two together.
  private static let keys = ["commit_date", "export_date"]

  private func parent(_ entityDirectory: String, _ key: String) -> String {
    "\(self.directory)/.\(entityDirectory.dropFirst())/\(key)=1970-01-01"
  }

  /// Makes the file if there is none.
  func make(
    for entityDirectory: String, _ family: RecordLayout.Family
  ) throws(FileSystemError) {
    let parent = self.parent(entityDirectory, Self.keys[family == .platformEvent ? 1 : 0])
    let path = "\(parent)/.none.ndjson.zst"
    // The hidden name needs a second character. A file that a crash has cut is made again.
    guard entityDirectory.utf8.count > 1, try self.fileSystem.size(of: path) != Self.content.count
    else { return }
    try self.fileSystem.makeDirectories(parent)
    let file = try OpenFile(path, [.write, .create, .truncate], on: self.fileSystem)
    try file.write(Self.content)
    try file.synchronize()
  }

  /// Whether there is one. Two entities that differ in their first letter have one in common, unless
  /// their folders have different keys: then both have none.
  func exists(for entityDirectory: String) throws(FileSystemError) -> Bool {
    var count = 0
    for key in Self.keys
    where try self.fileSystem.status(at: self.parent(entityDirectory, key)) != nil { count += 1 }
    return count == 1 && entityDirectory.utf8.count > 1
  }

  /// A zstd frame (RFC 8878) of one segment of 0 bytes, whose last block is raw and empty.
  private static let content: [UInt8] = [
    0x28, 0xB5, 0x2F, 0xFD,  // magic number
    0x20, 0x00,  // single segment, content size 0
    0x01, 0x00, 0x00,  // last block, raw, size 0
  ]
}
