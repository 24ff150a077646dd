internal import DurableFiles
internal import JSON

/// The finished files of a directory: the manifest, and the new files of an exchange that has been
/// made and is not in the manifest yet. Takes no lock and writes nothing.
struct FileList {
  private let manifest: Manifest
  private let made: FolderSwitch?

  /// - Parameter pipeline: whose exchanges count; nil for the files of all pipelines.
  /// - Throws: `FileSinkError`.
  init(
    in directory: String, pipeline: String?, _ kind: SegmentKind = .records,
    on fileSystem: any FileSystem = SystemFileSystem()
  ) throws(FileSinkError) {
    self.manifest = Manifest(directory: directory, fileSystem: fileSystem)
    guard let pipeline,
      let found = try FolderSwitch.read(in: directory, pipeline: pipeline, kind, on: fileSystem),
      try found.isMade(in: directory, pipeline: pipeline, kind, on: fileSystem)
    else {
      self.made = nil
      return
    }
    self.made = found
  }

  /// Visits the lines of all files, also of those that were replaced.
  func visitAll(_ visit: Manifest.Visit) throws(FileSinkError) {
    try self.visitAll(upTo: .max, visit)
  }

  private func visitAll(upTo limit: Int, _ visit: Manifest.Visit) throws(FileSinkError) {
    let names = (self.made?.names ?? []).map { Array($0.utf8) }
    var isListed = Array(repeating: false, count: names.count)
    try self.manifest.peek(upTo: limit) { line, name in
      for index in names.indices where name.elementsEqual(names[index]) { isListed[index] = true }
      visit(line, name)
    }
    for (index, line) in (self.made?.lines ?? []).enumerated() where !isListed[index] {
      Array(line.text().utf8).withUnsafeBufferPointer { line in
        names[index].withUnsafeBufferPointer { visit(line, $0) }
      }
    }
  }

  /// Visits the lines of files that were not replaced.
  func visitPresent(_ visit: Manifest.Visit) throws(FileSinkError) {
    var replaced = NameSet()
    // The manifest as it is now: a line that is added later may replace a file that is visited.
    let byteCount = try self.manifest.peek { line, _ in
      for name in Manifest.replaced(by: line) { replaced.insert(name) }
    }
    for name in self.made?.replaced ?? [] { replaced.insert(name) }
    try self.visitAll(upTo: byteCount) { line, name in
      if !replaced.contains(name) { visit(line, name) }
    }
  }
}
