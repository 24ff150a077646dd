internal import Cryptography
package import PostgresClient

/// Records to read again from Salesforce, because a change arrived without its values or could not
/// be written.
package struct ResyncTable {
  package enum Kind: String, Sendable {
    case overflow, wildcard, gap
    case deadLetter = "dead_letter"
    /// A complete pass over the object's records did not return the record.
    case missing
    /// The record was requested and not found: the user may not see it, or it was purged.
    case unseen
  }

  package struct Entry: Sendable, Equatable {
    package var kind: Kind
    /// Nil if the event was never decoded.
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
      // Events without an ID are all different.
      self.eventID = eventID?.isEmpty == true ? nil : eventID
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

  /// SQL: the `event_id` of entries that `verify --repair` has made.
  static let verifyEventID = "'verify'"

  /// SQL: the `event_id` of entries for changed records of which it is not known whether they are
  /// still, or from now on, among those that are copied.
  static let subsetEventID = "'subset'"

  static func qualifiedName(schema: String) -> String {
    Bookkeeping(schema: schema).qualified("_etl_resync")
  }

  /// Notes gap, overflow and wildcard events and unknown changes among the rows. Existing notes do
  /// not change.
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
      case .create, .update, .delete, .undelete, .event, .read, .readDeletion, .readFields: continue
      }
      entries.append(Self.entry(kind, buffer, index))
    }
    try self.note(entries, over: connection)
  }

  /// Notes records whose values have changed, until they are deleted. The time is that of the
  /// statement, which follows the events, because the transaction may have begun before them.
  func noteChanged(
    _ buffer: RowBuffer, rows: Range<Int>, over connection: PostgresConnection
  ) throws(PostgresError) {
    var isThere: [String: Bool] = [:]
    for index in rows where !buffer.rows[index].recordID.isEmpty {
      switch buffer.rows[index].change {
      case .create, .update, .undelete: isThere[buffer.recordID(index)] = true
      case .delete, .gapDelete: isThere[buffer.recordID(index)] = false
      default: continue
      }
    }
    let deleted = isThere.keys.filter { isThere[$0] == false }
    if !deleted.isEmpty {
      try connection.query(
        """
        UPDATE \(self.qualifiedName) SET done_at = now() WHERE entity = $1 AND kind = 'missing' \
        AND event_id = \(Self.subsetEventID) AND record_id = ANY($2::text[]) AND done_at IS NULL
        """, [self.entity, SQLArray.literal(deleted)])
    }
    let records = isThere.keys.filter { isThere[$0] == true }
    guard !records.isEmpty else { return }
    try connection.query(
      """
      INSERT INTO \(self.qualifiedName) (entity, kind, record_id, event_id, noted_at) \
      SELECT $1, 'missing', u.id, \(Self.subsetEventID), clock_timestamp() \
      FROM unnest($2::text[]) AS u (id) ON CONFLICT (entity, kind, event_id, record_id) \
      DO UPDATE SET noted_at = excluded.noted_at, done_at = NULL
      """, [self.entity, SQLArray.literal(records.sorted())])
  }

  /// Marks entries as done if the record's row is now right, in the open transaction.
  ///
  /// - Parameter settled: by record, milliseconds since 1970; its read contains all changes from before.
  func close(
    settled: [String: Int64], current: TableDefinition, over connection: PostgresConnection
  ) throws(PostgresError) {
    try connection.query(
      """
      UPDATE \(self.qualifiedName) AS r SET done_at = now() \
      FROM unnest($2::text[], $3::float8[]) AS u (id, settled) WHERE r.entity = $1 \
      AND r.kind IN ('gap', 'dead_letter', 'missing', 'unseen') AND r.done_at IS NULL \
      AND r.record_id = u.id AND NOT EXISTS (SELECT FROM \(current.qualifiedName) AS c \
      WHERE c.id = r.record_id AND (c._stale OR c._stale_fields IS NOT NULL)) \
      AND (r.event_id IS DISTINCT FROM \(Self.subsetEventID) \
      OR r.noted_at <= to_timestamp(u.settled / 1000))
      """,
      [
        self.entity, SQLArray.literal(settled.keys.map { $0 }),
        SQLArray.literal(settled.values.map { "\($0)" }),
      ])
  }

  /// Those of some records that `verify --repair` has noted and that no read has corrected yet.
  func askedByVerify(
    among records: [String], over connection: PostgresConnection
  ) throws(PostgresError) -> Set<String> {
    let result = try connection.query(
      """
      SELECT record_id FROM \(self.qualifiedName) WHERE entity = $1 AND kind = 'missing' \
      AND event_id = \(Self.verifyEventID) AND record_id = ANY($2::text[]) AND done_at IS NULL
      """, [self.entity, SQLArray.literal(records)])
    return Set((0..<result.rowCount).compactMap { result[$0, 0] })
  }

  /// Marks gaps and unseen records as done if a later deletion or full image has corrected or
  /// removed their rows.
  func closeGaps(
    current: TableDefinition, over connection: PostgresConnection
  ) throws(PostgresError) {
    try connection.query(
      """
      UPDATE \(self.qualifiedName) AS r SET done_at = now() WHERE r.entity = $1 \
      AND r.kind IN ('gap', 'unseen') AND r.done_at IS NULL AND NOT EXISTS (SELECT FROM \
      \(current.qualifiedName) AS c WHERE c.id = r.record_id \
      AND (c._stale OR c._stale_fields IS NOT NULL))
      """, [self.entity])
  }

  /// Whether anything is noted that `close` may mark as done.
  func hasOpenEntries(over connection: PostgresConnection) throws(PostgresError) -> Bool {
    try connection.query(
      """
      SELECT EXISTS (SELECT FROM \(self.qualifiedName) WHERE entity = $1 \
      AND kind IN ('gap', 'dead_letter', 'missing', 'unseen') AND done_at IS NULL)
      """, [self.entity])[0, 0] == "t"
  }

  /// Whether an entry says that any record of the object may have changed.
  func hasOpenWildcard(over connection: PostgresConnection) throws(PostgresError) -> Bool {
    try connection.query(
      """
      SELECT EXISTS (SELECT FROM \(self.qualifiedName) WHERE entity = $1 \
      AND kind = 'wildcard' AND done_at IS NULL)
      """, [self.entity])[0, 0] == "t"
  }

  /// Notes events that went to the dead letters, whatever their headers hold. The cause of the
  /// refusal (a key too long for an index, a character that the database's encoding lacks) may also
  /// refuse the note. The note then has fewer values, and an excerpt of such a value.
  func noteDeadLetters(_ entries: [Entry], over connection: PostgresConnection) throws {
    guard !entries.isEmpty else { return }
    if try connection.refusal(of: { try self.note(entries, over: connection) }) == nil { return }
    for entry in entries {
      var short = entry
      short.eventID = entry.eventID.map(Self.excerpt)
      var plain = short
      plain.recordID = entry.recordID.map(Self.excerpt)
      plain.replayID = entry.replayID.map(Self.excerpt)
      plain.commitTimestamp = nil
      let isNoted = try [entry, short].contains { entry in
        try connection.refusal { try self.note([entry], over: connection) } == nil
      }
      guard !isNoted else { continue }
      try self.insert([plain], entity: Self.excerpt(self.entity), over: connection)
    }
  }

  /// At most 97 ASCII bytes, different for different texts; short ASCII text is unchanged.
  private static func excerpt(_ text: String) -> String {
    let isShort = text.utf8.count <= 97 && text.utf8.allSatisfy { (0x20..<0x7F).contains($0) }
    if isShort { return text }
    let kept = text.unicodeScalars.prefix(80).map { scalar in
      (0x20..<0x7F).contains(scalar.value) ? Character(scalar) : "?"
    }
    return String(kept) + "_" + SHA256.hash(of: Array(text.utf8)).hex.prefix(16)
  }

  private func note(
    _ entries: [Entry], over connection: PostgresConnection
  ) throws(PostgresError) {
    guard !entries.isEmpty else { return }
    try self.insert(entries, entity: self.entity, over: connection)
  }

  /// Leaves out commit times that the database cannot hold.
  private func insert(
    _ entries: [Entry], entity: String, over connection: PostgresConnection
  ) throws(PostgresError) {
    try connection.query(
      """
      INSERT INTO \(self.qualifiedName) \
      (entity, kind, record_id, event_id, replay_id, commit_timestamp, epoch, ordinal) \
      SELECT $1, kind, record_id, event_id, replay_id, \
      '2000-01-01 00:00:00Z'::timestamptz + microseconds * interval '1 microsecond', \
      epoch, ordinal \
      FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::integer[], \
      $8::bigint[]) AS u (kind, record_id, event_id, replay_id, microseconds, epoch, ordinal) \
      ON CONFLICT (entity, kind, event_id, record_id) DO NOTHING
      """,
      [
        entity, SQLArray.literal(entries.map(\.kind.rawValue)),
        SQLArray.literal(entries.map(\.recordID)), SQLArray.literal(entries.map(\.eventID)),
        SQLArray.literal(entries.map(\.replayID)),
        SQLArray.literal(
          entries.map { entry in
            entry.commitTimestamp.flatMap { PostgresTimestamp(milliseconds: $0) }
              .map { String($0.microseconds) }
          }),
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

  /// Marks dead letters as done that were noted without record IDs, because their events could not
  /// be decoded or have none.
  ///
  /// - Parameters:
  ///   - eventIDs: IDs of events that can now be decoded, of any entity.
  ///   - replayIDs: hexadecimal replay IDs of those events that have no ID.
  static func closeUndecoded(
    eventIDs: [String], replayIDs: [String], schema: String, over connection: PostgresConnection
  ) throws(PostgresError) {
    try connection.query(
      """
      UPDATE \(Self.qualifiedName(schema: schema)) SET done_at = now() \
      WHERE kind = 'dead_letter' AND done_at IS NULL AND record_id IS NULL \
      AND (event_id = ANY($1::text[]) OR event_id IS NULL AND replay_id = ANY($2::text[]))
      """,
      [SQLArray.literal(eventIDs.map { .some($0) }), SQLArray.literal(replayIDs.map { .some($0) })])
  }

  /// The entry for a row.
  package static func entry(_ kind: Kind, _ buffer: RowBuffer, _ index: Int) -> Entry {
    let row = buffer.rows[index]
    func text(_ range: Range<Int>) -> String? {
      range.isEmpty ? nil : String(decoding: buffer.bytes[range], as: UTF8.self)
    }
    let replayID = RecordFold.metadataField(Self.replayIDField, of: row.metadata, buffer)
    return Entry(
      kind, recordID: text(row.recordID), eventID: text(row.eventID),
      replayID: replayID.flatMap(text), commitTimestamp: row.commitTimestamp, epoch: row.epoch,
      ordinal: row.ordinal)
  }

  private static let replayIDField = RecordFold.MetadataFields.index("_replay_id")
}
