/// A sink or store that takes records that were read, in addition to events.
package protocol RecordReceiver: AnyObject {
  /// Whether records can be read into it in rows of a layout. A `TableStore` must be ready for the
  /// layout.
  func takesReads(of layout: RecordLayout) -> Bool

  /// Whether all records of an object have to be read again: events are missing, one said that any
  /// record may have changed, or the user has requested it. False while a store is unavailable; the
  /// runner asks again.
  func needsPass(over entity: String, topic: String) throws -> Bool

  /// How far the records of an object have been read into it; nil if no pass has begun, or if it
  /// has to start again.
  ///
  /// - Parameter key: `ReadPass.key`; that of a pass over all columns is the object's name.
  func pass(over key: String) -> ReadPass?

  /// The number of the last pass of the key; 0 if none has begun.
  func passNumber(over key: String) -> Int

  /// When the last complete reads of an object without change events began.
  func lastReads(of entity: String) -> PollSchedule.LastReads

  /// Takes records that were read, all of one layout, and the progress of their pass including
  /// them; nil if they belong to none. They follow the events of the open commit and become durable
  /// with it.
  func write(_ reads: RecordBatch, pass: ReadPass?) throws

  /// Takes note that changes do not come, since the stages leave out their object: what the receiver
  /// holds of the object lacks them. Durable with the open commit.
  func noteLeftOut(_ changes: RecordBatch)

  /// Takes a record that was read and cannot become a row; durable with the open commit.
  func noteUnreadable(_ record: UnreadableRecord, of entity: String)

  /// Takes what the org says about all fields of an object that the user may see. For readers of
  /// the copy; nothing depends on it.
  func noteDescriptions(_ fields: [FieldDescription], of entity: String) throws

  /// Whether it has only a part of some objects, of which changed records are read again.
  var readsChangedRecords: Bool { get }

  /// Whether changed records of an object have not been read, or may not have been.
  func hasChangedRecords(of entity: String) -> Bool

  /// Changed records of an object that may be read now. The next `write` without a pass has those of
  /// the last call that were found.
  ///
  /// - Parameter limit: the largest number; with 0, no `write` follows.
  func recordsToRead(of entity: String, limit: Int) throws -> [String]

  /// The number of API calls made today to read them.
  func callsToday() -> Int

  /// Takes a number of such calls; durable with the open commit.
  func noteCalls(_ count: Int)
}

extension RecordReceiver {
  package var readsChangedRecords: Bool { false }
  package func hasChangedRecords(of entity: String) -> Bool { false }
  package func recordsToRead(of entity: String, limit: Int) throws -> [String] { [] }
  package func callsToday() -> Int { 0 }
  package func noteCalls(_ count: Int) {}
}

/// A store whose wrong records are read again, one by one.
package protocol RepairingStore: Store, RecordReceiver {
  /// Whether any records are read again.
  var repairsRecords: Bool { get }

  /// Whether `recordsToRepair` may be called now.
  var isIdle: Bool { get }

  /// Records of an object that are wrong in the store and may be read again, ordered by ID, after
  /// `id`. Nil if the store is unavailable.
  func recordsToRepair(_ entity: String, after id: String, limit: Int) throws -> [String]?

  /// Takes IDs of records that were requested and not found, and the last event before; durable
  /// with the open commit.
  func noteUnseen(_ records: [String], of entity: String, epoch: Int, ordinal: Int64)

  /// The number of records of passes, by object, that the store itself has refused since the last
  /// call.
  func takeRefusedReads() -> [String: Int]

  /// The number of API calls made to repair records in the last day, by this run and earlier ones.
  func repairCallsOfDay() throws -> Int

  /// Takes a number of such calls; durable with the open commit.
  func noteRepairCalls(_ count: Int)
}

extension RepairingStore {
  package var repairsRecords: Bool { true }
}

/// A store whose tables are copies of objects, with a state for each column.
package protocol CopyStore: RepairingStore {
  /// Whether records can be read into the store: it is configured so, and the database allows it.
  var takesReads: Bool { get }

  /// Its first run was to read all records.
  var beganWithReads: Bool { get }

  /// Notes that all records of an object will be read for the first time, which the store's
  /// completeness has to take into account.
  func awaitReads(of entity: String) throws

  /// Dotted names of the fields whose values the store's columns for an object hold.
  func fields(of entity: String) throws -> [String]

  /// Takes what is known about reading an object's fields, by dotted name, and notes the states of
  /// its columns.
  ///
  /// - Returns: the columns that rows may lack values in, which can be read.
  func noteAccess(_ access: [String: FieldAccess], of entity: String) throws -> [FillingColumn]
}
