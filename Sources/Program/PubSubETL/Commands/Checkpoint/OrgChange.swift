internal import Bytes
internal import Checkpoint
import FileSink
import JSON
import Pipeline
import PostgresSink

/// The state of a pipeline after the user has accepted the org of its login.
///
/// Databases are changed first, each in one transaction, and the checkpoint last: whatever has not come to
/// pass at a kill still belongs to the old org, or to the old epoch of a stream that is not the old one, so
/// the next run stops as before, and the same command completes what is missing.
struct OrgChange {
  /// The org's ID of the login.
  let org: String
  /// Those that the state belongs to.
  private(set) var oldOrgs: Set<String> = []
  let old: CheckpointDocument?
  private(set) var document: CheckpointDocument
  /// Positions of all topics: each begins an epoch.
  private(set) var positions: [String: TopicPosition] = [:]
  /// Objects whose records are read again.
  let entities: [String]
  private let hasFiles: Bool
  /// The checkpoint is more than a copy of what databases have, or there is one.
  let storesDocument: Bool

  /// The message of exit code 65 for another org and for another stream.
  static let remedy =
    "If Salesforce moves an org to another instance, its ID stays, but its instance URL may change and "
    + "its replay IDs may start again. A sandbox that is refreshed gets another ID. If it is not the org you "
    + "want, correct the login. To accept it, run 'pubsub-etl checkpoint accept-org FILE': all topics "
    + "begin a new epoch where the pipeline file's 'start' says, and with --snapshot the next run reads all "
    + "records again"

  /// - Throws: `RunFailure` (65) when the checkpoint belongs to another org.
  static func check(_ document: CheckpointDocument?, isOf org: String) throws {
    guard let document, document.org != org else { return }
    throw RunFailure(
      .otherOrg,
      "the checkpoint of pipeline '\(document.pipeline)' belongs to org \(document.org), but the login is "
        + "for org \(org). \(Self.remedy)")
  }

  /// - Parameters:
  ///   - stored: the checkpoint; nil when there is none.
  ///   - entities: objects whose records have to be read again.
  /// - Throws: `RunFailure` (65) when the pipeline has no state of any org.
  init(
    _ configuration: PipelineConfiguration, to org: String, stored: CheckpointDocument?,
    _ databases: SinkDatabases, entities: [String]
  ) throws {
    self.org = org
    self.hasFiles = !configuration.fileSinks.isEmpty
    self.old = stored
    self.entities = entities
    var topics = Set(configuration.source.topics.map(\.name))
    topics.formUnion(stored.map { Array($0.topics.keys) } ?? [])
    var newest = 0
    for entry in databases.entries {
      topics.formUnion(entry.positions.map { Array($0.keys) } ?? [])
      if entry.state == nil { newest = max(newest, entry.orgState?.newestEpoch ?? 0) }
      self.oldOrgs.formUnion(entry.state.map { [$0.org] } ?? entry.orgState?.orgs ?? [])
    }
    if stored == nil {
      var exported: Set<String> = []
      for files in configuration.fileSinks {
        try ExportedFile.visit(.records, in: files.directory, pipeline: configuration.name) {
          exported.insert($0.org)
        }
      }
      self.oldOrgs.formUnion(exported)
    }
    if let stored { self.oldOrgs.insert(stored.org) }
    guard !self.oldOrgs.isEmpty else { throw FileCheckpointStore.missing(configuration) }
    for topic in topics {
      let exported = try configuration.exportedEpochs(ofTopic: topic)
      let known =
        [stored?.topics[topic]].compactMap { $0 }
        + databases.entries.compactMap { $0.positions?[topic] }
      let epoch = (exported + known.map(\.epoch) + [newest]).max() ?? 0
      self.positions[topic] = TopicPosition(
        beginningEpoch: epoch + 1, holes: known.map(\.holes).max() ?? 0)
    }
    self.storesDocument = stored != nil || configuration.needsCheckpoint
    self.document = stored ?? CheckpointDocument(pipeline: configuration.name, org: org)
    self.document.org = org
    self.document.instance = nil
    self.document.topics = self.positions
    // A sink that is new in the pipeline file stays so: its `start` counts at the next run.
    for sink in configuration.postgresSinks {
      let isKnown = stored?.sinks[sink.name] != nil
      guard
        isKnown
          || databases.entries.contains(where: { $0.name == sink.name && $0.isConcerned(org) })
      else { continue }
      self.document.sinks[sink.name] = SinkDatabases.documentState(schema: sink.sink.schema)
    }
    for files in configuration.fileSinks where stored.map({ $0.sinks[files.name] != nil }) ?? true {
      let state = self.document.sinks[files.name] ?? SinkState(directory: files.directory)
      self.document.sinks[files.name] = SinkState(
        try FilePass.restarting(state.json, directory: files.directory, entities: entities))
    }
  }

  /// Lines of a label and a value, each ended.
  func text(_ databases: SinkDatabases) -> String {
    let orgs = self.oldOrgs.sorted().joined(separator: ", ")
    var lines: [(label: String, value: String)] = [
      ("org", self.oldOrgs == [self.org] ? "\(orgs), as before" : "\(orgs)"),
      ("new org", self.org),
    ]
    for (topic, position) in self.positions.sorted(by: { $0.key < $1.key }) {
      lines.append(("topic", topic))
      if let old = self.old?.topics[topic] {
        lines.append(("", "stored: \(PipelineStatus.lines(old).joined(separator: ", "))"))
      }
      lines.append(("", "new: \(PipelineStatus.lines(position).joined(separator: ", "))"))
    }
    for entry in databases.entries {
      lines.append(
        ("database", "\(entry.name): " + (entry.isConcerned(org) ? "the same" : "unchanged")))
    }
    lines.append(
      (
        "records",
        self.entities.isEmpty
          ? "those of the old org stay as they are; --snapshot reads all records again"
          : "the next run reads all of \(self.entities.joined(separator: ", "))"
      ))
    if self.oldOrgs != [self.org], databases.entries.contains(where: { $0.isConcerned(self.org) }) {
      lines.append(
        (
          "attention",
          "if both orgs have a record (a copied sandbox) and the old org changed it later, the old row "
            + "stays, even after --snapshot; for a clean copy, give the postgres sink a new name and schema with "
            + "\"start\": \"now\" in the pipeline file"
        ))
    }
    if self.oldOrgs != [self.org], self.hasFiles {
      lines.append(
        (
          "attention",
          "the files keep the lines of the old org, and the views mix both orgs; for a clean copy, use "
            + "another directory and another name in the pipeline file"
        ))
    }
    return PipelineStatus.text(lines)
  }

  /// Makes it durable. To be called with the lock held.
  func store(
    _ store: FileCheckpointStore, _ databases: SinkDatabases,
    _ configuration: PipelineConfiguration,
    owner: RunOwner
  ) throws {
    let command =
      "checkpoint accept-org" + (self.entities.isEmpty ? "" : " --snapshot")
    try CheckpointJournal.append(
      configuration.statePaths, command: command, topic: nil,
      old: self.old?.json ?? .array(self.oldOrgs.sorted().map { .string($0) }),
      new: self.document.json)
    try databases.accept(
      org: self.org, self.positions, reading: self.entities, owner: owner, command: command)
    if self.storesDocument { try store.save(self.document) }
  }
}
