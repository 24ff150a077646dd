import JSON
import Pipeline
import PostgresClient
import PostgresSink
import TestSupport

/// A sink at work, and an eye on its database. Rows are of `Opportunity` with the fields `Name`,
/// `Parent` and `Amount` (in this order), events are numbered as they come.
final class SinkRun {
  static let topic = "/data/OpportunityChangeEvent"
  static let name = MetadataSlot.count
  static let parent = MetadataSlot.count + 1
  static let amount = MetadataSlot.count + 2

  let sink: PostgresSink
  let eye: PostgresConnection
  var notices: [String] = []
  /// Called at each notice: retries have one.
  var onNotice: ((String) throws -> Void)?
  private(set) var ordinal: Int64
  /// Refused events that `prepare` has reported.
  private(set) var refused: [RefusedEvent] = []
  private let epoch: Int
  /// The layout of all rows that are written without another.
  private let layout = SinkRun.layout()

  static func layout(
    _ amount: ColumnType = .double, schemaID: String = "schema-1", _ more: [Column] = []
  ) -> RecordLayout {
    .test(
      [
        Column("Name", 0, .string), Column("Parent", 1, .string), Column("Amount", 2, amount),
      ] + more, schemaID: schemaID)
  }

  init(
    _ database: TestDatabase, place: String = "host /state", identity: String? = nil,
    pipeline: String = "opps", topics: [String] = [SinkRun.topic], takesOver: Bool = false,
    acceptsMissing: Bool = false,
    ordinal: Int64 = 0, epoch: Int = 1, url: String? = nil,
    _ change: (inout PostgresSinkConfiguration) -> Void = { _ in }
  ) throws {
    self.eye = try database.connect()
    self.ordinal = ordinal
    self.epoch = epoch
    self.sink = try PostgresSink(
      name: "warehouse",
      configuration: database.configuration {
        if let url { $0.connection.url = url }
        change(&$0)
      }, pipeline: pipeline, org: "00D", topics: topics,
      owner: LeaseOwner(place: place, identity: identity ?? place, processID: 7),
      takesOver: takesOver, acceptsMissing: acceptsMissing)
    self.sink.onNotice = { [unowned self] notice in
      self.notices.append(notice)
      do { try self.onNotice?(notice) } catch { self.notices.append("\(error)") }
    }
    self.sink.onRepair = { [unowned self] in self.notices.append($0) }
    self.sink.session.onRetry = { [unowned self] message, _, delay in
      self.sink.onNotice?("\(message); again in \(delay)")
    }
  }

  /// Opens the sink, and commits a row so that there are tables to be changed by the test.
  @discardableResult func begin() throws -> Self {
    try self.sink.open(creating: [:])
    try self.write(["first"])
    try self.commit()
    return self
  }

  /// Creates a record for each of the names, with the name as its ID.
  func write(
    _ names: [String], layout: RecordLayout? = nil, type: String = "CREATE",
    _ fields: (String) -> [Int: TestCell] = { _ in [:] }
  ) throws {
    let batch = RecordBatch(layout: layout ?? self.layout)
    batch.epoch = self.epoch
    for name in names {
      batch.addChange(
        type, name, ordinal: self.ordinal,
        [Self.name: TestCell.text(name)].merging(fields(name)) { _, new in new })
      self.ordinal += 1
    }
    try self.sink.take(batch)
  }

  /// Counts an event that the test has written itself.
  func advance() { self.ordinal += 1 }

  var positions: [String: JSONValue] {
    [
      Self.topic: [
        "epoch": .integer(self.epoch), "next_ordinal": .integer(self.ordinal), "resume": "0a",
        "complete_through_ms": self.completeThrough.map { .integer($0) } ?? nil,
      ]
    ]
  }

  /// What the runner says of the topic, milliseconds since 1970.
  var completeThrough: Int64? = 1_771_300_990_000

  func prepare() throws { self.refused += try self.sink.sealAndPrepare(self.positions) }

  func commit() throws {
    try self.prepare()
    try self.sink.commitPatiently()
  }

  /// Names in history, by ordinal; and that the positions are those of the last commit.
  func history() throws -> [String] {
    try self.eye.column("SELECT _record_id FROM salesforce.opportunity_history ORDER BY _ordinal")
  }

  func current() throws -> [String] {
    try self.eye.column("SELECT id FROM salesforce.opportunity WHERE NOT _stale ORDER BY _ordinal")
  }

  func stale() throws -> [String] {
    try self.eye.column("SELECT id FROM salesforce.opportunity WHERE _stale ORDER BY id")
  }

  func storedOrdinal() throws -> String {
    try self.eye.column(
      "SELECT topics -> '\(Self.topic)' ->> 'next_ordinal' FROM salesforce._etl_checkpoint")[0]
  }

  /// Records noted as dead letters, by ordinal.
  func noted() throws -> [String] {
    try self.eye.column(
      "SELECT record_id FROM salesforce._etl_resync WHERE kind = 'dead_letter' ORDER BY ordinal")
  }

  /// Makes the first `times` rows written to history from now on do something.
  func disturbHistory(times: Int = 1, _ statement: String) throws {
    try self.eye.execute(
      """
      CREATE SEQUENCE public.disturbance;
      CREATE FUNCTION public.disturb() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF nextval('public.disturbance') <= \(times) THEN \(statement); END IF; RETURN NEW; END $$;
      CREATE TRIGGER disturb BEFORE INSERT ON salesforce.opportunity_history
      FOR EACH ROW EXECUTE FUNCTION public.disturb()
      """)
  }

  /// Ends the sink's server process, and waits for its end.
  func terminateBackend() throws {
    try self.eye.terminateOthers()
  }
}
