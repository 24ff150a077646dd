internal import DurableFiles
internal import JSON

/// Completes what a compaction or an erasure has begun, or takes it back. Used by the holder of the pipeline's lock
/// in the directory.
struct CompactionRecovery {
  private let directory: String
  private let pipeline: String
  private let kind: SegmentKind
  private let fileSystem: any FileSystem

  init(
    _ directory: String, pipeline: String, _ kind: SegmentKind = .records,
    on fileSystem: any FileSystem
  ) {
    self.directory = directory
    self.pipeline = pipeline
    self.kind = kind
    self.fileSystem = fileSystem
  }

  /// Does what is left to do after a crash at any call. Costs a few calls if nothing is.
  ///
  /// - Throws: `FileSinkError.inconsistent` for a damaged record or manifest; `.io`.
  func complete() throws(FileSinkError) {
    let found = try FolderSwitch.read(
      in: self.directory, pipeline: self.pipeline, self.kind, on: self.fileSystem)
    if let found {
      if try found.isMade(
        in: self.directory, pipeline: self.pipeline, self.kind, on: self.fileSystem)
      {
        try self.list(found)
      } else {
        try self.attempt { () throws(FileSystemError) in try self.forget() }
      }
    }
    try self.attempt { () throws(FileSystemError) in
      let path = FolderSwitch.temporaryPath(
        in: self.directory, pipeline: self.pipeline, self.kind)
      if try self.fileSystem.status(at: path) != nil { try self.fileSystem.remove(path) }
    }
    try self.removeStaging()
  }

  /// Makes an exchange durable, and then its files part of the manifest.
  func list(_ made: FolderSwitch) throws(FileSinkError) {
    let staging = FolderSwitch.staging(of: made.folder, pipeline: self.pipeline, self.kind)
    try self.attempt { () throws(FileSystemError) in
      for path in [made.folder, staging] {
        try self.fileSystem.synchronizeDirectory(
          self.fileSystem.parent(of: "\(self.directory)/\(path)"))
      }
    }
    var manifest = Manifest(directory: self.directory, fileSystem: self.fileSystem)
    let wanted = Set(made.names.map { Array($0.utf8) })
    var listed: Set<[UInt8]> = []
    try manifest.read { _, name in
      let name = Array(name)
      if wanted.contains(name) { listed.insert(name) }
    }
    try self.attempt { () throws(FileSystemError) in
      for line in made.lines where !listed.contains(Array((line["name"]?.string ?? "").utf8)) {
        try manifest.append(line, isFirst: true)
      }
      try self.forget()
    }
  }

  private func forget() throws(FileSystemError) {
    try self.fileSystem.remove(
      FolderSwitch.path(in: self.directory, pipeline: self.pipeline, self.kind))
    try self.fileSystem.synchronizeDirectory(self.directory)
  }

  /// Removes old folders, and new ones that were not exchanged.
  func removeStaging() throws(FileSinkError) {
    try self.attempt { () throws(FileSystemError) in
      guard self.kind == .records else { return try self.removeStaging(in: self.directory) }
      for object in try self.fileSystem.list(self.directory) ?? []
      where object.isDirectory && !object.name.hasPrefix(".") {
        try self.removeStaging(in: "\(self.directory)/\(object.name)")
      }
    }
  }

  private func removeStaging(in path: String) throws(FileSystemError) {
    let staging = FolderSwitch.stagingName(pipeline: self.pipeline, self.kind)
    guard try self.fileSystem.status(at: "\(path)/\(staging)") != nil,
      let entry = try self.fileSystem.list(path)?.first(where: { $0.name == staging }),
      !entry.isLink
    else { return }
    for folder in try self.fileSystem.list("\(path)/\(staging)") ?? [] {
      let path = "\(path)/\(staging)/\(folder.name)"
      if folder.isDirectory, !folder.isLink {
        try self.remove(path)
      } else {
        try self.fileSystem.remove(path)
      }
    }
    try self.fileSystem.removeDirectory("\(path)/\(staging)")
  }

  /// Removes a new folder that was not exchanged. Old ones may still be listed.
  func remove(new folder: String) throws(FileSinkError) {
    try self.attempt { () throws(FileSystemError) in try self.remove(folder) }
  }

  /// Removes a hidden folder and the names in it, none of which is a folder.
  private func remove(_ folder: String) throws(FileSystemError) {
    for entry in try self.fileSystem.list(folder) ?? [] {
      try self.fileSystem.remove("\(folder)/\(entry.name)")
    }
    try self.fileSystem.removeDirectory(folder)
  }

  private func attempt(_ body: () throws(FileSystemError) -> Void) throws(FileSinkError) {
    do throws(FileSystemError) { try body() } catch { throw FileSinkError(error) }
  }
}
