package import JSON
internal import Pipeline

/// The parts of a sink's state about passes, other than the progress of each.
extension FilePass {
  static let awaitedKey = "awaited_reads"

  /// Objects whose records have to be read, whatever was read before.
  static func awaited(in state: JSONValue?) -> Set<String> {
    Set((state?[Self.awaitedKey]?.array ?? []).compactMap(\.string))
  }

  /// The state with its passes and objects replaced.
  static func adding(
    _ passes: [String: FilePass], awaited: Set<String>, to state: JSONValue
  ) -> JSONValue {
    guard var members = state.members else { return state }
    members.removeAll { $0.name == Self.key || $0.name == Self.awaitedKey }
    if !passes.isEmpty {
      let list = passes.values.sorted { $0.key < $1.key }.map(\.json)
      members.append(JSONMember(Self.key, .array(list)))
    }
    if !awaited.isEmpty {
      members.append(
        JSONMember(Self.awaitedKey, .array(awaited.sorted().map { .string($0) })))
    }
    return JSONValue(.object(members))
  }

  /// The state of a sink that moves to another org: incomplete passes of the old org and requested
  /// objects are read again.
  ///
  /// - Parameter entities: objects whose records have to be read.
  /// - Throws: `FileSinkError.inconsistent` for a damaged state.
  package static func restarting(
    _ state: JSONValue, directory: String, entities: [String]
  ) throws(FileSinkError) -> JSONValue {
    var passes = try Self.passes(in: state, directory: directory)
    var awaited = Self.awaited(in: state).union(entities)
    for (key, pass) in passes where pass.state != .complete {
      passes[key] = nil
      if pass.isOfRecords { awaited.insert(pass.entity) }
    }
    passes = passes.filter { !awaited.contains($1.entity) }
    // The changed records are those of the old org.
    let members = (state.members ?? []).filter { $0.name != FileSink.changedKey }
    return Self.adding(passes, awaited: awaited, to: JSONValue(.object(members)))
  }
}
