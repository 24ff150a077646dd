package import PostgresStore

/// What has to be read again from Salesforce: changes that came without their values, or could not
/// be written.
package struct ResyncTable {
  package enum Kind: String, Sendable {
    case overflow, wildcard, gap
    case deadLetter = "dead_letter"
  }

  package struct Entry: Sendable, Equatable {
    package var kind: Kind
    /// Nil when the event could not be decoded so far.
    package var recordID: String?
    package var eventID: String?
    package var replayID: String?
    /// Milliseconds since 1970.
    package var commitTimestamp: Int64?
    package var epoch: Int32?
    package var ordinal: Int64?

    package init(
      _ kind: Kind, recordID: String?, eventID: String?, replayID: String? = nil,
      commitTimestamp: Int64? = nil, epoch: Int32? = nil, ordinal: Int64? = nil
    ) {
      self.kind = kind
      self.recordID = recordID
      self.eventID = eventID
      self.replayID = replayID
      self.commitTimestamp = commitTimestamp
      self.epoch = epoch
      self.ordinal = ordinal
    }
  }

  private let entity: String
  private let qualifiedName: String

  package init(entity: String, schema: String) {
    self.entity = entity
    self.qualifiedName = Self.qualifiedName(schema: schema)
  }

  static func qualifiedName(schema: String) -> String {
    Bookkeeping(schema: schema).qualified("_etl_resync")
  }

  /// Notes gap, overflow and wildcard events and unknown changes among the rows. What is noted
  /// already stays as it is.
  package func note(
    _ buffer: RowBuffer, rows: Range<Int>, over connection: PostgresConnection
  ) throws(PostgresError) {
    var entries: [Entry] = []
    for index in rows {
      let kind: Kind
      switch buffer.rows[index].change {
      case .gapCreate, .gapUpdate, .gapDelete, .gapUndelete, .unknown: kind = .gap
      case .overflow: kind = .overflow
      case .wildcard: kind = .wildcard
      case .create, .update, .delete, .undelete, .event: continue
      }
      entries.append(Self.entry(kind, buffer, index))
    }
    try self.note(entries, over: connection)
  }

  package func note(
    _ entries: [Entry], over connection: PostgresConnection
  ) throws(PostgresError) {
    guard !entries.isEmpty else { return }
    try connection.query(
      """
      INSERT INTO \(self.qualifiedName) \
      (entity, kind, record_id, event_id, replay_id, commit_timestamp, epoch, ordinal) \
      SELECT $1, kind, record_id, event_id, replay_id, \
      'epoch'::timestamptz + milliseconds * interval '1 millisecond', epoch, ordinal \
      FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::integer[], \
      $8::bigint[]) AS u (kind, record_id, event_id, replay_id, milliseconds, epoch, ordinal) \
      ON CONFLICT DO NOTHING
      """,
      [
        self.entity, SQLArray.literal(entries.map(\.kind.rawValue)),
        SQLArray.literal(entries.map(\.recordID)), SQLArray.literal(entries.map(\.eventID)),
        SQLArray.literal(entries.map(\.replayID)),
        SQLArray.literal(entries.map { $0.commitTimestamp.map(String.init) }),
        SQLArray.literal(entries.map { $0.epoch.map(String.init) }),
        SQLArray.literal(entries.map { $0.ordinal.map(String.init) }),
      ])
  }

  /// Marks dead letters as done whose events have arrived in the history after all.
  func closeDeadLetters(
    of recordIDs: [String], heldBy history: TableDefinition, over connection: PostgresConnection
  ) throws(PostgresError) {
    guard !recordIDs.isEmpty else { return }
    try connection.query(
      """
      UPDATE \(self.qualifiedName) AS r SET done_at = now() WHERE r.entity = $1 \
      AND r.kind = 'dead_letter' AND r.done_at IS NULL AND r.record_id = ANY($2::text[]) \
      AND EXISTS (SELECT FROM \(history.qualifiedName) AS h \
      WHERE h._record_id = r.record_id AND h._event_id = r.event_id)
      """, [self.entity, SQLArray.literal(recordIDs)])
  }

  /// What is to be noted of a row.
  package static func entry(_ kind: Kind, _ buffer: RowBuffer, _ index: Int) -> Entry {
    let row = buffer.rows[index]
    func text(_ range: Range<Int>) -> String? {
      range.isEmpty ? nil : String(decoding: buffer.bytes[range], as: UTF8.self)
    }
    let replayID = RecordFold.metadataField(Self.replayIDField, of: row, buffer)
    return Entry(
      kind, recordID: text(row.recordID), eventID: text(row.eventID),
      replayID: replayID.flatMap(text), commitTimestamp: row.commitTimestamp, epoch: row.epoch,
      ordinal: row.ordinal)
  }

  private static let replayIDField = RecordFold.MetadataFields.index("_replay_id")
}
