package import Avro
internal import Bytes
package import Clocks
internal import DurableFiles
internal import EventLoop

/// Schemas of one org in files, so that a run need not ask for what an earlier one has seen. Shared by
/// all pipelines of a state directory, by runs at the same time too.
///
/// Nothing here is trusted, and nothing here ends a run. A file counts only if it is whole (by its own
/// SHA-256), is of this org and of this ID, and its text has the ID as its fingerprint, as Salesforce's
/// have. Any other is as good as none: the schema is asked for, and the file replaced. A text that does
/// not have its ID as fingerprint is not stored.
///
/// The fingerprint leaves `doc` out, which tells dates from numbers: two orgs, or one org before and
/// after an admin has made a date of a time, may have one ID for schemas with other `doc`
/// (EventSchemas.md#schema-id). So the org is part of the key, and a file counts for `maxAge`; a value that contradicts it makes the
/// source ask sooner.
///
/// Files are replaced by a rename, and not synchronised: what a power cut leaves of one is found out
/// by its SHA-256. Calls block for as long as a small local file takes. From any thread.
package final class SchemaCache: Sendable {
  package struct Counts: Sendable, Equatable {
    /// Schemas that the service gave.
    package var fetched = 0
    /// Schemas that files gave.
    package var cached = 0

    package init() {}
  }

  /// How long `doc` may be out of date.
  static let maxAge: Int64 = 24 * 3_600_000
  /// Beyond these all files are dropped, together.
  static let maxFileCount = 2000
  static let maxByteCount = 64 << 20
  private static let suffix = ".schema.json"
  private static let temporarySuffix = ".schema.tmp"

  private let directory: String
  private let org: String
  private let isReadOnly: Bool
  private let onFetch: @Sendable (String) -> Void
  private let onFailure: @Sendable (String) -> Void
  private let fileSystem: any FileSystem
  private let now: @Sendable () -> Int64
  private let state = Lock(Counts())

  /// - Parameters:
  ///   - directory: absolute; made with the first schema, in a directory that is there.
  ///   - org: organization ID, 18 characters.
  ///   - clock: of the times in the files.
  ///   - isReadOnly: nothing is stored, so that no file belongs to whoever only looks.
  ///   - onFetch: receives the ID of each schema that the service gave. From any thread.
  ///   - onFailure: receives why a schema could not be stored. From any thread.
  package convenience init(
    directory: String, org: String, isReadOnly: Bool = false, clock: ProcessClock = ProcessClock(),
    onFetch: @escaping @Sendable (String) -> Void = { _ in },
    onFailure: @escaping @Sendable (String) -> Void = { _ in }
  ) {
    self.init(
      directory: directory, org: org, isReadOnly: isReadOnly, onFetch: onFetch,
      onFailure: onFailure,
      fileSystem: SystemFileSystem(), now: { clock.wallTime })
  }

  init(
    directory: String, org: String, isReadOnly: Bool = false,
    onFetch: @escaping @Sendable (String) -> Void = { _ in },
    onFailure: @escaping @Sendable (String) -> Void = { _ in }, fileSystem: any FileSystem,
    now: @escaping @Sendable () -> Int64
  ) {
    self.directory = directory
    self.org = org
    self.isReadOnly = isReadOnly
    self.onFetch = onFetch
    self.onFailure = onFailure
    self.fileSystem = fileSystem
    self.now = now
  }

  /// What this object has counted.
  package var counts: Counts { self.state.withLock { $0 } }

  /// The text of a schema: from its file, or else from the service.
  ///
  /// - Parameters:
  ///   - isRenewed: the file is out of date.
  ///   - fetch: asks the service.
  package func json(
    of id: String, isRenewed: Bool = false, orFetch fetch: () async throws -> String
  ) async throws -> String {
    if !isRenewed, let known = self.find(id) { return known.json }
    let json = try await fetch()
    self.fetched(id, json: json, schema: try? Schema(parsing: Array(json.utf8)))
    return json
  }

  /// The text of a schema that the service does not give any more, however old its file is.
  package func forgotten(_ id: String) -> String? { self.find(id, acceptsOld: true)?.json }

  package func find(_ id: String, acceptsOld: Bool = false) -> (json: String, schema: Schema)? {
    guard let path = self.path(of: id), let stored = self.read(path), stored.org == self.org,
      stored.id == id, acceptsOld || self.isFresh(stored),
      let schema = try? Schema(parsing: Array(stored.json.utf8)), Self.has(schema, id: id)
    else { return nil }
    self.state.withLock { $0.cached += 1 }
    return (stored.json, schema)
  }

  /// Counts a schema that the service gave, and stores it if it is what its ID says.
  ///
  /// - Parameter schema: what the text says; nil for a text that is not a schema.
  package func fetched(_ id: String, json: String, schema: Schema?) {
    self.state.withLock { $0.fetched += 1 }
    self.onFetch(id)
    guard !self.isReadOnly, let schema, Self.has(schema, id: id), let path = self.path(of: id)
    else { return }
    let bytes = StoredSchema(org: self.org, id: id, fetchedAt: self.now(), json: json).bytes
    guard bytes.count <= StoredSchema.maxByteCount else { return }
    do throws(FileSystemError) {
      try self.store(bytes, at: path)
    } catch {
      self.onFailure("schema \(id) is not kept for later runs: \(error)")
    }
  }

  /// Where OpenSSL has no MD5, the file's SHA-256 has to do.
  private static func has(_ schema: Schema, id: String) -> Bool {
    schema.serviceID.map { $0 == id } ?? true
  }

  /// A time to come was stored while the clock was wrong, and tells no age.
  private func isFresh(_ stored: StoredSchema) -> Bool {
    let (age, overflow) = self.now().subtractingReportingOverflow(stored.fetchedAt)
    return !overflow && (0..<Self.maxAge).contains(age)
  }

  // MARK: Files

  /// Nil for an ID that is not a fingerprint: no other becomes part of a path.
  private func path(of id: String) -> String? {
    guard id.utf8.count == 22, self.org.utf8.count == 18,
      self.org.utf8.allSatisfy(\.isAlphanumeric),
      id.utf8.allSatisfy({ $0.isWordCharacter || $0 == UInt8(ascii: "-") })
    else { return nil }
    return "\(self.directory)/\(self.org).\(id)\(Self.suffix)"
  }

  /// Nil when the file cannot be used.
  private func read(_ path: String) -> StoredSchema? {
    do throws(FileSystemError) {
      guard let size = try self.fileSystem.size(of: path),
        (1...StoredSchema.maxByteCount).contains(size)
      else { return nil }
      return StoredSchema(
        try OpenFile(path, [], on: self.fileSystem).content(byteCount: size))
    } catch {
      return nil
    }
  }

  private func store(_ bytes: [UInt8], at path: String) throws(FileSystemError) {
    _ = try self.fileSystem.makeDirectory(self.directory)
    try self.makeRoom(for: bytes.count)
    // A name that no other run has: two may store the same schema at the same time.
    let number = String(UInt64.random(in: 0 ... .max), radix: 16)
    let temporary = "\(self.directory)/.\(number)\(Self.temporarySuffix)"
    do throws(FileSystemError) {
      try OpenFile(temporary: temporary, on: self.fileSystem).write(bytes)
      try self.fileSystem.rename(temporary, to: path)
    } catch {
      // If it stays, it is dropped with the others.
      try? self.fileSystem.remove(temporary)
      throw error
    }
  }

  /// Whether a run has given a file its name: nothing else is removed.
  private static func isOurs(_ name: String) -> Bool {
    if name.hasSuffix(Self.temporarySuffix) { return name.hasPrefix(".") }
    let parts = name.utf8.split(separator: UInt8(ascii: "."), maxSplits: 2)
    return name.hasSuffix(Self.suffix) && parts.count == 3 && parts[0].count == 18
      && parts[1].count == 22
  }

  private func makeRoom(for byteCount: Int) throws(FileSystemError) {
    let paths = (try self.fileSystem.list(self.directory) ?? [])
      .filter { Self.isOurs($0.name) }
      .map { "\(self.directory)/\($0.name)" }
    var total = byteCount
    for path in paths { total += try self.fileSystem.size(of: path) ?? 0 }
    guard paths.count >= Self.maxFileCount || total > Self.maxByteCount else { return }
    for path in paths {
      // Another run may be doing the same.
      try? self.fileSystem.remove(path)
    }
  }
}
