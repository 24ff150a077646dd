import Bytes
import JSON
import Pipeline
import RESTSource

/// The findings of `verify`: names of fields and IDs of records, never values.
struct VerifyReport {
  struct Entry {
    var sink: String
    var entity: String
    /// Milliseconds since 1970; what has changed since is not judged.
    var horizon: Int64 = 0
    /// The org has said through when its changes are settled.
    var hasSettledTime = true
    /// The copy has no field that shows when a record was last changed, so its time of the last
    /// change was compared with `SystemModstamp`.
    var comparesStamps = false
    var findings = CopyFindings()
    /// The SOQL condition of the records that are copied.
    var scope: String?
    /// Nil where no values are compared, and for copies without formulas.
    var formulas: FormulaFindings?
    var blind = BlindFields()
    /// Names of columns of the events' schema.
    var columns: Set<String> = []
    /// Fields of the schema that are not read; those that are hidden are among `blind`, too.
    var unread: [SnapshotPlan.Unread] = []

    init(sink: String, entity: String) {
      self.sink = sink
      self.entity = entity
    }

    /// A formula with other values is as wrong as a column.
    var verdict: CopyFindings.Verdict {
      let differs = self.formulas?.fields.isEmpty == false
      return differs ? .drift : self.findings.verdict
    }

    /// Fields that are not compared, and why.
    var notComparable: [(field: String, reason: String)] {
      let unread = self.unread.compactMap { field -> (field: String, reason: String)? in
        guard case .type(let type) = field.reason else { return nil }
        return (field.name, "REST has it as \(type), which is not a value of the schema's type")
      }
      return unread
        + (self.findings.unfilled + self.findings.notComparable).map { ($0.field, $0.reason) }
    }
  }

  var pipeline: String
  var depth: ObjectVerification.Depth
  var entries: [Entry] = []
  /// Why sinks are not compared, in words.
  var obstacles: [String] = []
  var apiCalls = 0
  /// `source.refresh` of the pipeline.
  var refresh: RefreshConfiguration?

  init(pipeline: String, depth: ObjectVerification.Depth) {
    self.pipeline = pipeline
    self.depth = depth
  }

  /// The worst of all tables.
  var verdict: CopyFindings.Verdict {
    let verdicts = self.entries.map(\.verdict)
    return [.drift, .notCompared, .incomplete].first(where: verdicts.contains) ?? .equal
  }
}

// MARK: Text

extension VerifyReport {
  /// IDs in a line; the rest is a number.
  private static let maxShown = 5

  var text: String {
    var lines: [(label: String, value: String)] = []
    for entry in self.entries {
      lines.append(("sink", entry.sink))
      lines.append(("entity", "\(entry.entity): \(Self.summary(entry))"))
      lines += self.lines(entry).map { ("", $0) }
    }
    lines += self.obstacles.map { ("not compared", $0) }
    if let proposal = self.proposedRefresh {
      lines.append(
        (
          "to refresh",
          "nothing keeps \(BlindFields.list(self.unrefreshed)) current; with this line in 'source', "
            + "runs read such fields \(self.refreshInterval): \"refresh\": \(proposal.text())"
        ))
    }
    lines.append(("compared", self.compared))
    lines.append(("API calls", ProgressLine.grouped(Int64(self.apiCalls))))
    return PipelineStatus.text(lines)
  }

  /// The parts that were compared, and those that were not.
  private var compared: String {
    switch self.depth {
    case .full: "every value of every record"
    case .sample(let count):
      "which records there are, when they were last changed, and the values of a sample of "
        + "\(ProgressLine.grouped(Int64(count)))"
    case .records:
      "which records there are, and when they were last changed; not their values: --full or "
        + "--sample N compares them"
    }
  }

  private static func summary(_ entry: Entry) -> String {
    let found = entry.findings
    let verdict =
      switch entry.verdict {
      case .equal: "equal"
      case .drift: "DRIFT"
      case .notCompared: "NOT COMPARED"
      case .incomplete: "INCOMPLETE"
      }
    return
      "\(verdict); \(Phrase.count(found.compared, "record")) of "
      + "\(ProgressLine.grouped(Int64(found.total))) compared, \(ProgressLine.grouped(Int64(found.equal))) equal, as of "
      + UTCTime.timestamp(milliseconds: entry.horizon)
  }

  private func lines(_ entry: Entry) -> [String] {
    let found = entry.findings
    var lines: [String] = []
    func add(_ count: Int, _ what: String, _ kind: String? = nil) {
      guard count > 0 else { return }
      let ids = kind.flatMap { found.records[$0] } ?? []
      lines.append(
        "\(ProgressLine.grouped(Int64(count))) \(what)"
          + (ids.isEmpty ? "" : ": \(Self.list(ids, of: count))"))
    }
    add(found.missing, "missing in the copy, or deleted there", "missing")
    add(
      found.extra,
      entry.scope == nil
        ? "deleted in the org, but not in the copy"
        : "in the copy, but deleted in the org, or without meeting the condition", "extra")
    add(found.notFound, "in the copy only: purged, or not shared with the user", "not_found")
    add(found.differing, "differing", "differing")
    for field in found.fields {
      lines.append(
        "  \(field.field): \(ProgressLine.grouped(Int64(field.count))) differing: "
          + Self.list(field.records, of: field.count))
    }
    add(
      found.outside,
      "in the copy, but left out by a filter or route now; reading them again does not remove them",
      "outside")
    add(
      found.marked,
      "marked as stale, partial or waiting to be read again"
        + (found.outdated > 0
          ? ", \(ProgressLine.grouped(Int64(found.outdated))) of them missing or different: the next "
            + "run reads them again" : ": not judged"))
    add(found.tooYoung, "changed since: too recent to compare")
    add(found.leftOut, "left out by a filter or route, or erased, and not in the copy")
    add(found.undecided, "not judged, because a condition of a stage cannot be checked")
    add(found.refused, "refused by a stage")
    lines += Self.lines(found, .refused)
    add(found.unreadable, "with a value that cannot be read or stored")
    lines += Self.lines(found, .unreadable)
    if found.lacking > 0 {
      lines.append(
        "  \(ProgressLine.grouped(Int64(found.lacking))) of the refused and unreadable are missing in "
          + "the copy")
    }
    add(found.gone, "deleted in both while they were compared")
    add(found.uncounted, "not accounted for: report this as a bug")
    if let scope = entry.scope {
      lines.append("records that do not meet \"\(scope)\" are compared only if the copy has them")
    }
    if entry.comparesStamps {
      lines.append(
        "the copy has no comparable LastModifiedDate: SystemModstamp was compared with the time of "
          + "the last change that the copy has")
    }
    if let formulas = entry.formulas { lines += Self.lines(formulas) }
    lines += entry.notComparable.map { "not comparable: \($0.field): \($0.reason)" }
    lines += entry.blind.lines(of: entry.entity).map { "not compared: \($0)" }
    if !entry.hasSettledTime {
      lines.append(
        "the org does not report up to when its changes are final; used its clock instead")
    }
    return lines
  }

  private static func lines(_ formulas: FormulaFindings) -> [String] {
    let names = formulas.compared.count
    let records = Phrase.count(formulas.recordCount, "record")
    return (names > 0 ? ["\(Phrase.count(names, "formula")) compared for \(records)"] : [])
      + formulas.fields.map { field in
        "  formula \(field.field): \(ProgressLine.grouped(Int64(field.count))) differ from the org: "
          + Self.list(field.records, of: field.count)
      } + formulas.leftOut.map { "formula not compared: \($0.field): \($0.reason)" }
  }

  private static func lines(_ found: CopyFindings, _ kind: OmittedRecord.Kind) -> [String] {
    found.omissions.all.filter { $0.kind == kind }.map { reason in
      "  \(reason.reason): \(ProgressLine.grouped(Int64(reason.count)))"
        + (reason.records.isEmpty ? "" : ": \(Self.list(reason.records, of: reason.count))")
    }
  }

  private static func list(_ ids: [String], of count: Int) -> String {
    let shown = ids.prefix(Self.maxShown).joined(separator: ", ")
    return count > Self.maxShown ? shown + ", …" : shown
  }
}

// MARK: JSON

extension VerifyReport {
  /// All members are always present.
  var json: JSONValue {
    [
      "pipeline": .string(self.pipeline), "equal": .boolean(self.verdict == .equal),
      "verdict": .string(self.verdict.rawValue),
      "compares": .string(self.depthName), "api_calls": .integer(self.apiCalls),
      "sinks_not_compared": Self.texts(self.obstacles),
      "proposed_refresh": self.proposedRefresh ?? nil,
      "tables": .array(self.entries.map { Self.json($0) }),
    ]
  }

  var depthName: String {
    switch self.depth {
    case .full: "values"
    case .sample: "records and a sample of values"
    case .records: "records"
    }
  }

  private static func json(_ entry: Entry) -> JSONValue {
    let found = entry.findings
    func records(_ kind: String) -> JSONValue { Self.texts(found.records[kind] ?? []) }
    return [
      "sink": .string(entry.sink), "entity": .string(entry.entity),
      "equal": .boolean(entry.verdict == .equal), "verdict": .string(entry.verdict.rawValue),
      "as_of": PipelineStatus.time(entry.horizon),
      "settled_by_org": .boolean(entry.hasSettledTime),
      "compares_system_modstamp": .boolean(entry.comparesStamps),
      "where": entry.scope.map { .string($0) } ?? nil,
      "records": Self.counts(found),
      "missing": records("missing"), "extra": records("extra"),
      "not_found": records("not_found"), "differing": records("differing"),
      "outside": records("outside"),
      "omitted": .array(
        found.omissions.all.map { reason -> JSONValue in
          [
            "kind": .string(reason.kind.rawValue), "reason": .string(reason.reason),
            "count": .integer(reason.count), "records": Self.texts(reason.records),
          ]
        }),
      "fields": .array(
        found.fields.map { field -> JSONValue in
          [
            "field": .string(field.field), "count": .integer(field.count),
            "records": Self.texts(field.records),
          ]
        }),
      "not_comparable": .array(
        entry.notComparable.map { field, reason -> JSONValue in
          ["field": .string(field), "reason": .string(reason)]
        }),
      "blind": entry.blind.json, "formulas": entry.formulas.map(Self.json) ?? nil,
    ]
  }

  private static func json(_ formulas: FormulaFindings) -> JSONValue {
    [
      "compared": Self.texts(formulas.compared), "records": .integer(formulas.recordCount),
      "differing": .array(
        formulas.fields.map { field -> JSONValue in
          [
            "field": .string(field.field), "count": .integer(field.count),
            "records": Self.texts(field.records),
          ]
        }),
      "not_compared": .array(
        formulas.leftOut.map { field -> JSONValue in
          ["field": .string(field.field), "reason": .string(field.reason)]
        }),
    ]
  }

  /// The classes, whose sum is `total`, and after it counts of parts of them.
  private static func counts(_ found: CopyFindings) -> JSONValue {
    [
      "equal": .integer(found.equal), "missing": .integer(found.missing),
      "extra": .integer(found.extra), "not_found": .integer(found.notFound),
      "differing": .integer(found.differing), "outside": .integer(found.outside),
      "left_out": .integer(found.leftOut), "refused": .integer(found.refused),
      "unreadable": .integer(found.unreadable), "undecided": .integer(found.undecided),
      "marked": .integer(found.marked), "too_young": .integer(found.tooYoung),
      "gone": .integer(found.gone), "uncounted": .integer(found.uncounted),
      "total": .integer(found.total), "compared": .integer(found.compared),
      "outdated": .integer(found.outdated), "lacking": .integer(found.lacking),
      "sampled": .integer(found.sampled),
    ]
  }

  private static func texts(_ texts: [String]) -> JSONValue {
    .array(texts.map { .string($0) })
  }
}
