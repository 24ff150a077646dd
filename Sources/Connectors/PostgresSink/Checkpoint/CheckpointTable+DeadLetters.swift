internal import Pipeline
internal import PostgresClient

extension CheckpointTable {
  /// Where the event of a dead letter was.
  package struct LetterPlace {
    /// The object, or the name of the channel.
    var entity: String
    /// Hexadecimal.
    var replayID: String
    var epoch: Int
    var ordinal: Int64

    package init(entity: String, replayID: String, epoch: Int, ordinal: Int64) {
      (self.entity, self.replayID, self.epoch, self.ordinal) = (entity, replayID, epoch, ordinal)
    }
  }

  /// Closes the notes about dropped letters. A note about a record of a current table stays open until
  /// the record is read again. Durable on return.
  package func drop(_ letters: [LetterPlace]) throws {
    do {
      guard try self.exists("_etl_resync") else { return }
      try self.connection.query(
        """
        UPDATE \(self.bookkeeping.qualified("_etl_resync")) AS r SET done_at = now() \
        FROM unnest($1::text[], $2::text[], $3::integer[], $4::bigint[]) \
        AS u (entity, replay_id, epoch, ordinal) \
        WHERE r.kind = 'dead_letter' AND r.done_at IS NULL AND r.replay_id = u.replay_id \
        AND (r.entity = u.entity OR (r.epoch, r.ordinal) = (u.epoch, u.ordinal)) \
        AND (r.record_id IS NULL OR NOT EXISTS (\
        SELECT FROM \(self.bookkeeping.qualified("_etl_table")) AS t \
        WHERE t.entity = r.entity AND t.kind = 'current'))
        """,
        [
          SQLArray.literal(letters.map { .some($0.entity) }),
          SQLArray.literal(letters.map { .some($0.replayID) }),
          SQLArray.literal(letters.map { .some(String($0.epoch)) }),
          SQLArray.literal(letters.map { .some(String($0.ordinal)) }),
        ])
    } catch {
      throw self.explained(error)
    }
  }

  /// Closes the notes about letters that are lost, as `drop` does for those that can be read.
  ///
  /// - Parameters:
  ///   - topic: the topic of the events.
  ///   - range: their epoch and ordinals; nil for all. A note about an event that could not be
  ///     decoded has none, and counts unless its letter still waits.
  ///   - kept: hexadecimal replay IDs of the topic's letters that still wait.
  package func drop(
    topic: String, _ range: (epoch: Int, ordinals: ClosedRange<Int64>)?, but kept: [String]
  ) throws {
    do {
      guard try self.exists("_etl_resync") else { return }
      let tables = "c.topics -> $2 -> 'tables'"
      try self.connection.query(
        """
        UPDATE \(self.bookkeeping.qualified("_etl_resync")) AS r SET done_at = now() \
        WHERE r.kind = 'dead_letter' AND r.done_at IS NULL \
        AND r.event_id IS DISTINCT FROM '\(RefusedReads.eventID)' \
        AND ($5::integer IS NULL OR r.epoch = $5 AND r.ordinal BETWEEN $6::bigint AND $7::bigint \
        OR r.epoch IS NULL AND r.entity = $1) \
        AND (r.replay_id = ANY($8::text[])) IS NOT TRUE \
        AND (r.entity = $1 OR r.entity IN (\
        SELECT t.entity FROM \(self.bookkeeping.qualified("_etl_checkpoint")) AS c, \
        jsonb_each_text(CASE jsonb_typeof(\(tables)) WHEN 'object' THEN \(tables) END) AS e, \
        \(self.bookkeeping.qualified("_etl_table")) AS t \
        WHERE c.pipeline = $3 AND c.sink = $4 AND t.table_name = e.key)) \
        AND (r.record_id IS NULL OR NOT EXISTS (\
        SELECT FROM \(self.bookkeeping.qualified("_etl_table")) AS t \
        WHERE t.entity = r.entity AND t.kind = 'current'))
        """,
        [
          TopicName.entity(topic), topic, self.pipeline, self.sink,
          range.map { String($0.epoch) }, range.map { String($0.ordinals.lowerBound) },
          range.map { String($0.ordinals.upperBound) }, SQLArray.literal(kept.map { .some($0) }),
        ])
    } catch {
      throw self.explained(error)
    }
  }
}
