import PostgresClient
import PostgresSink
import Testing

/// What somebody does to the tables of a sink, and what each part of the program makes of it.
struct Vandalism: CustomTestStringConvertible, Sendable {
  enum Outcome: Sendable {
    /// The run goes on; the notice says so.
    case repaired(String)
    /// The run goes on as if nothing had been.
    case harmless
    /// The run ends before a row is written.
    case refused(PostgresError.Disposition, String)
  }

  var name: String
  var sql: String
  var outcome: Outcome
  /// Executed before the run that goes on; nil for `--accept-missing`.
  var remedy: String? = ""
  /// The rows of the history that are left.
  var lostHistory = false
  /// Names that the history had are gone.
  var lostNames = false
  /// Current rows that are left after it was accepted that they are gone.
  var lostCurrent = false
  var mode = PostgresSinkConfiguration.Mode.both
  /// Seen by `status` and `refold`, which know no layout.
  var isSurveyed = true
  /// The same while a run is going on.
  var isMidRun = true

  var testDescription: String { self.name }

  static let history = "salesforce.opportunity_history"
  static let current = "salesforce.opportunity"

  static let all: [Self] = [
    Self(
      name: "current table dropped", sql: "DROP TABLE \(current) CASCADE",
      outcome: .repaired("is rebuilt from the history")),
    Self(
      name: "current table renamed",
      sql: "ALTER TABLE \(current) RENAME TO opportunity_old",
      outcome: .repaired("is rebuilt from the history")),
    Self(
      name: "current table dropped, without history", sql: "DROP TABLE \(current) CASCADE",
      outcome: .refused(.lostTable, "without a history it cannot be rebuilt"), remedy: nil,
      lostCurrent: true, mode: .current),
    Self(
      name: "history dropped", sql: "DROP TABLE \(history) CASCADE",
      outcome: .refused(.lostTable, "a history cannot be rebuilt"), remedy: nil, lostHistory: true),
    Self(
      name: "history renamed", sql: "ALTER TABLE \(history) RENAME TO old_history",
      outcome: .refused(.lostTable, "if it is salesforce.old_history now"),
      remedy: "ALTER TABLE salesforce.old_history RENAME TO opportunity_history"),
    Self(
      name: "history moved", sql: "ALTER TABLE \(history) SET SCHEMA public",
      outcome: .refused(.lostTable, "if it is public.opportunity_history now"),
      remedy: "ALTER TABLE public.opportunity_history SET SCHEMA salesforce"),
    Self(
      name: "both dropped", sql: "DROP TABLE \(history), \(current) CASCADE",
      outcome: .refused(.lostTable, "opportunity_history"), remedy: nil, lostHistory: true,
      lostCurrent: true),
    Self(
      name: "live view dropped", sql: "DROP VIEW salesforce.opportunity_live",
      outcome: .repaired("view opportunity_live was missing and has been created again"),
      isSurveyed: false,
      isMidRun: false),
    Self(
      name: "all views dropped",
      sql: "DROP VIEW salesforce.opportunity_live, salesforce._freshness", outcome: .harmless),
    Self(
      name: "a table in place of a view",
      sql:
        "DROP VIEW salesforce.opportunity_live; CREATE TABLE salesforce.opportunity_live (a int)",
      outcome: .harmless),
    Self(
      name: "somebody's view on the tables",
      sql: """
        CREATE VIEW public.mine AS SELECT l.id, l.name, h._epoch FROM salesforce.opportunity_live l
        JOIN \(history) h ON h._record_id = l.id
        """, outcome: .harmless),
    Self(
      name: "_etl_table dropped", sql: "DROP TABLE salesforce._etl_table CASCADE",
      outcome: .repaired("_etl_table is missing"), isMidRun: false),
    Self(
      name: "_etl_column dropped", sql: "DROP TABLE salesforce._etl_column CASCADE",
      outcome: .repaired("_etl_column is missing"), isMidRun: false),
    Self(
      name: "_etl_journal dropped", sql: "DROP TABLE salesforce._etl_journal",
      outcome: .repaired("_etl_journal is missing"), isMidRun: false),
    Self(
      name: "_etl_resync and _etl_tombstone dropped",
      sql: "DROP TABLE salesforce._etl_resync, salesforce._etl_tombstone CASCADE",
      outcome: .repaired("_etl_resync, _etl_tombstone are missing"), isMidRun: false),
    Self(
      name: "column of the current table renamed",
      sql: "ALTER TABLE \(current) RENAME COLUMN name TO title",
      outcome: .refused(.configuration, "was renamed to \"title\""),
      remedy: "ALTER TABLE \(current) RENAME COLUMN title TO name"),
    Self(
      name: "last column of the history renamed",
      sql: "ALTER TABLE \(history) RENAME COLUMN amount TO value",
      outcome: .refused(.configuration, "was renamed to \"value\""),
      remedy: "ALTER TABLE \(history) RENAME COLUMN value TO amount"),
    Self(
      name: "own column renamed", sql: "ALTER TABLE \(history) RENAME COLUMN _epoch TO era",
      outcome: .refused(.configuration, "column _epoch integer was renamed or dropped"),
      remedy: "ALTER TABLE \(history) RENAME COLUMN era TO _epoch"),
    Self(
      name: "own column of another type",
      sql: """
        DROP VIEW salesforce.opportunity_changes, salesforce.opportunity_versions; \
        ALTER TABLE \(history) ALTER COLUMN _ordinal TYPE numeric
        """,
      outcome: .refused(.configuration, "column _ordinal was changed to numeric"),
      remedy: """
        DROP VIEW IF EXISTS salesforce.opportunity_changes, salesforce.opportunity_versions; \
        ALTER TABLE \(history) ALTER COLUMN _ordinal TYPE bigint
        """),
    Self(
      name: "column of the current table dropped",
      sql: "ALTER TABLE \(current) DROP COLUMN name CASCADE",
      outcome: .repaired("again after it was dropped, and filled from the history"),
      isSurveyed: false, isMidRun: false),
    Self(
      name: "column of the history dropped", sql: "ALTER TABLE \(history) DROP COLUMN name CASCADE",
      outcome: .refused(.lostTable, "run --accept-missing"),
      remedy: nil, lostNames: true, isSurveyed: false, isMidRun: false),
    Self(
      name: "column of another type",
      sql: "ALTER TABLE \(history) ALTER COLUMN amount TYPE text",
      outcome: .refused(.configuration, "change the type of one of them"),
      remedy:
        "ALTER TABLE \(history) ALTER COLUMN amount TYPE double precision USING amount::float8",
      isSurveyed: false, isMidRun: false),
    Self(
      name: "a NOT NULL column of somebody's own",
      sql: """
        ALTER TABLE \(current) ADD COLUMN owner_note text NOT NULL DEFAULT '';
        ALTER TABLE \(current) ALTER COLUMN owner_note DROP DEFAULT
        """,
      outcome: .refused(.configuration, "column \"owner_note\" of table"),
      remedy: "ALTER TABLE \(current) ALTER COLUMN owner_note DROP NOT NULL"),
    Self(
      name: "a NOT NULL column with a default",
      sql: "ALTER TABLE \(history) ADD COLUMN note text NOT NULL DEFAULT ''", outcome: .harmless),
    Self(
      name: "a field made NOT NULL that some events lack",
      sql:
        "ALTER TABLE \(history) ALTER COLUMN name SET NOT NULL; DELETE FROM \(history) WHERE false",
      outcome: .harmless),
    Self(
      name: "a view in place of the table",
      sql: """
        ALTER TABLE \(current) RENAME TO opportunity_base;
        CREATE VIEW \(current) AS SELECT * FROM salesforce.opportunity_base
        """,
      outcome: .refused(.configuration, "must be a table but is a view"),
      remedy: "DROP VIEW \(current); ALTER TABLE salesforce.opportunity_base RENAME TO opportunity",
      isMidRun: false),
    Self(
      name: "primary key dropped",
      sql: "ALTER TABLE \(current) DROP CONSTRAINT opportunity_pkey",
      outcome: .harmless),
    Self(
      name: "a rule", sql: "CREATE RULE away AS ON INSERT TO \(current) DO INSTEAD NOTHING",
      outcome: .refused(.configuration, "has rules (away)"),
      remedy: "DROP RULE away ON \(current)"),
    Self(
      name: "a rule that adds something",
      sql: """
        CREATE TABLE public.log (id text);
        CREATE RULE log AS ON UPDATE TO \(current) DO ALSO INSERT INTO public.log VALUES (NEW.id)
        """,
      outcome: .refused(.configuration, "has rules (log)"), remedy: "DROP RULE log ON \(current)"),
    Self(
      name: "a rule that is disabled",
      sql: """
        CREATE RULE away AS ON INSERT TO \(current) DO INSTEAD NOTHING;
        ALTER TABLE \(current) DISABLE RULE away
        """, outcome: .harmless),
    Self(
      name: "rules against deletion",
      sql: """
        CREATE RULE keep AS ON DELETE TO \(current) DO INSTEAD NOTHING;
        CREATE RULE keep AS ON DELETE TO \(history) DO INSTEAD NOTHING
        """, outcome: .harmless),
    Self(
      name: "a rule of the history, which COPY passes by",
      sql: "CREATE RULE away AS ON INSERT TO \(history) DO INSTEAD NOTHING", outcome: .harmless),
    Self(
      name: "a NOT NULL column that a trigger fills",
      sql: """
        ALTER TABLE \(history) ADD COLUMN tenant text NOT NULL DEFAULT 'x';
        ALTER TABLE \(history) ALTER COLUMN tenant DROP DEFAULT;
        CREATE FUNCTION public.fill() RETURNS trigger LANGUAGE plpgsql
        AS 'BEGIN NEW.tenant := current_user; RETURN NEW; END';
        CREATE TRIGGER fill BEFORE INSERT ON \(history) FOR EACH ROW
        EXECUTE FUNCTION public.fill()
        """, outcome: .harmless),
    Self(
      name: "NOT NULL columns that the server fills",
      sql: """
        ALTER TABLE \(history) ADD COLUMN number bigint GENERATED ALWAYS AS IDENTITY;
        ALTER TABLE \(history) ADD COLUMN twice bigint NOT NULL
        GENERATED ALWAYS AS (_ordinal * 2) STORED;
        CREATE DOMAIN public.tenant AS text NOT NULL DEFAULT 'x';
        ALTER TABLE \(history) ADD COLUMN tenant public.tenant
        """, outcome: .harmless),
    Self(
      name: "a column of a domain that may not be null",
      sql: """
        CREATE DOMAIN public.tenant AS text NOT NULL;
        ALTER TABLE \(current) ADD COLUMN tenant public.tenant DEFAULT 'x';
        ALTER TABLE \(current) ALTER COLUMN tenant DROP DEFAULT
        """,
      outcome: .refused(.configuration, "column \"tenant\" of table"),
      remedy: "ALTER TABLE \(current) ALTER COLUMN tenant SET DEFAULT ''"),
    Self(
      name: "such a column of the history, which COPY passes by",
      sql: """
        CREATE DOMAIN public.tenant AS text NOT NULL;
        ALTER TABLE \(history) ADD COLUMN tenant public.tenant DEFAULT 'x';
        ALTER TABLE \(history) ALTER COLUMN tenant DROP DEFAULT
        """, outcome: .harmless),
    Self(
      name: "live view renamed",
      sql: "ALTER VIEW salesforce.opportunity_live RENAME TO opportunities", outcome: .harmless),
    Self(
      name: "a longer key and an index",
      sql: """
        CREATE UNIQUE INDEX ON \(history) (_topic, _epoch, _ordinal, _record_id);
        CREATE INDEX ON \(current) (lower(name))
        """, outcome: .harmless),
    Self(
      name: "a trigger",
      sql: """
        CREATE FUNCTION public.pass() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
        CREATE TRIGGER pass BEFORE INSERT OR UPDATE ON \(current) FOR EACH ROW
        EXECUTE FUNCTION public.pass()
        """, outcome: .harmless),
  ]
}
