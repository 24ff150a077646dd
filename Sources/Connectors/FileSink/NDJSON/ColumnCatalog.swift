internal import DurableFiles
internal import Glibc
internal import JSON
internal import Pipeline

/// Maintains the descriptions next to the data: `<entity>/_columns.json` with the columns of every
/// schema seen, and `_views.sql` with a typed DuckDB view for each entity.
///
/// Both are derived from what is on disk and the new layout, and replaced by a rename, so they
/// persist across runs, and other pipelines may share the directory: a lock on `.catalog.lock`
/// keeps two pipelines from losing each other's columns.
struct ColumnCatalog {
  /// Absolute path of the sink's directory.
  let directory: String
  /// Name of the pipeline that writes there.
  let pipeline: String
  let fileSystem: any FileSystem

  init(
    directory: String, pipeline: String, fileSystem: any FileSystem = SystemFileSystem()
  ) {
    self.directory = directory
    self.pipeline = pipeline
    self.fileSystem = fileSystem
  }

  /// Adds the columns of a layout; call it once per layout. Unchanged files are not rewritten.
  ///
  /// - Parameters:
  ///   - isOfReads: the layout's rows are records that were read.
  ///   - entityDirectory: the directory below `directory` that holds the entity's files.
  func add(
    _ layout: RecordLayout, isOfReads: Bool = false, entityDirectory: String
  ) throws(FileSystemError) {
    try self.fileSystem.makeDirectories("\(self.directory)/\(entityDirectory)")
    let lock = try self.lock()
    try self.update(layout, isOfReads, entityDirectory)
    // Keeps the lock until here; its deinitializer closes the descriptor.
    _ = consume lock
  }

  /// Rewrites views that an earlier version wrote, or that were moved, since they contain the path
  /// of the directory.
  func renewViews() throws(FileSystemError) {
    guard try self.fileSystem.size(of: "\(self.directory)/\(Self.viewsName)") != nil else { return }
    let lock = try self.lock()
    try self.writeViews()
    _ = consume lock
  }

  func lock() throws(FileSystemError) -> OpenFile {
    let lock = try OpenFile(
      "\(self.directory)/.catalog.lock", [.write, .create], on: self.fileSystem)
    _ = try lock.lock(wait: true)
    return lock
  }

  private func update(
    _ layout: RecordLayout, _ isOfReads: Bool, _ entityDirectory: String
  ) throws(FileSystemError) {
    let columnsPath = "\(self.directory)/\(entityDirectory)/\(Self.columnsName)"
    // A file that is not a catalog, perhaps edited by hand, is replaced, because nothing depends on
    // it.
    var entity =
      try self.read(columnsPath).flatMap { EntityColumns(parsing: $0) }
      ?? EntityColumns(entity: layout.entity)
    entity.merge(layout, pipeline: self.pipeline, isOfReads: isOfReads)
    try self.replace(columnsPath, with: entity.text)

    try EmptyFile(directory: self.directory, fileSystem: self.fileSystem)
      .make(for: entityDirectory, layout.family)
    try self.writeViews()
  }

  private func writeViews() throws(FileSystemError) {
    let empty = EmptyFile(directory: self.directory, fileSystem: self.fileSystem)
    var entities: [DuckDBViews.Entity] = []
    for entry in try self.fileSystem.list(self.directory) ?? [] where entry.isDirectory {
      let path = "\(self.directory)/\(entry.name)/\(Self.columnsName)"
      guard let columns = try self.read(path).flatMap({ EntityColumns(parsing: $0) }) else {
        continue
      }
      entities.append(
        DuckDBViews.Entity(
          directory: entry.name, columns: columns,
          hasEmptyFile: try empty.exists(for: entry.name)))
    }
    entities.sort { $0.directory < $1.directory }
    try self.makeFreshness()
    try self.makeFields()
    try self.replace(
      "\(self.directory)/\(Self.viewsName)",
      with: DuckDBViews(directory: self.directory).text(of: entities))
  }

  static let columnsName = "_columns.json"
  static let viewsName = "_views.sql"

  /// The content of a file; nil if it does not exist.
  func read(_ path: String) throws(FileSystemError) -> [UInt8]? {
    guard let byteCount = try self.fileSystem.size(of: path) else { return nil }
    return try OpenFile(path, [], on: self.fileSystem).content(byteCount: byteCount)
  }

  /// Replaces a file atomically and durably.
  func replace(_ path: String, with text: String) throws(FileSystemError) {
    let content = Array(text.utf8)
    if try self.read(path) == content { return }
    let parent = self.fileSystem.parent(of: path)
    let temporary = "\(parent)/.\(Substring(path.utf8.dropFirst(parent.utf8.count + 1))).tmp"
    let file = try OpenFile(temporary: temporary, on: self.fileSystem)
    try file.write(content)
    try file.synchronize()
    try self.fileSystem.rename(temporary, to: path)
    try self.fileSystem.synchronizeDirectory(parent)
  }
}
