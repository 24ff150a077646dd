internal import Bytes
import Pipeline

/// The history and the state of a pipeline as one HTML page that needs nothing else.
struct ReportPage {
  /// The state of the pipeline when the page was made.
  enum State: Sendable {
    /// As `status` prints it.
    case known(String, problems: [String])
    /// Why it could not be read.
    case unknown(String)
  }

  let pipeline: String
  let figures: RunFigures
  /// About lines of the ledger that were skipped; nil if there are none.
  let remark: String?
  let state: State
  /// Milliseconds since 1970.
  let madeAt: Int64

  /// Rows of a table, so that a page of many runs opens at once.
  private static let maxRowCount = 100

  /// Begins every page, so that a page replaces no other file.
  static let beginning: StaticString = "<!doctype html>\n<!-- pubsub-etl report -->\n"

  func html(hiding secrets: SecretMask) -> HTMLPage {
    var page = HTMLPage(hiding: secrets)
    page.markup(Self.beginning)
    page.element("html", ["lang": "en"]) { page in
      page.element("head") { page in self.addHead(to: &page) }
      page.element("body") { page in
        page.element("header") { page in self.addHeader(to: &page) }
        page.element("main") { page in self.addSections(to: &page) }
      }
    }
    page.markup("\n")
    return page
  }

  private func addHead(to page: inout HTMLPage) {
    page.element("meta", ["charset": "utf-8"])
    page.element("meta", ["http-equiv": "Content-Security-Policy", "content": ReportStyle.policy])
    page.element(
      "meta", ["name": "viewport", "content": "width=device-width, initial-scale=1"])
    page.element("meta", ["name": "color-scheme", "content": "light dark"])
    page.element("meta", ["name": "referrer", "content": "no-referrer"])
    page.element("meta", ["name": "generator", "content": "pubsub-etl \(Program.version)"])
    page.element("title", text: "Pipeline \(self.pipeline)")
    page.element("style") { $0.markup(ReportStyle.sheet) }
  }

  private func addHeader(to page: inout HTMLPage) {
    page.element("h1", text: "Pipeline \(self.pipeline)")
    let times = self.figures.items.map(\.beganAt)
    let range =
      if let first = times.min(), let last = times.max() {
        "Runs from \(Self.time(first)) to \(Self.time(last)). "
      } else {
        "No run is recorded. "
      }
    page.element(
      "p",
      text: range + "Made at \(Self.time(self.madeAt)) by pubsub-etl \(Program.version). "
        + "All times are in UTC.")
    if let remark { page.element("p", ["class": "bad"], text: "\(remark).") }
    page.element("nav", ["aria-label": "Sections"]) { page in
      page.element("ul") { page in
        for section in Section.allCases {
          page.element("li") {
            $0.element("a", ["href": "#\(section.rawValue)"], text: section.title)
          }
        }
      }
    }
  }

  // MARK: Sections

  private enum Section: String, CaseIterable {
    case summary, charts, outputs, topics, failures, holes, verdicts, runs, state

    var title: String {
      switch self {
      case .summary: "Summary"
      case .charts: "Over time"
      case .outputs: "Files and tables"
      case .topics: "Topics"
      case .failures: "Failures and retries"
      case .holes: "Gaps and dead letters"
      case .verdicts: "Comparisons with the org"
      case .runs: "Runs"
      case .state: "State"
      }
    }
  }

  private func addSections(to page: inout HTMLPage) {
    for section in Section.allCases {
      page.element("section", ["aria-labelledby": section.rawValue]) { page in
        page.element("h2", ["id": section.rawValue], text: section.title)
        switch section {
        case .summary: self.addSummary(to: &page)
        case .charts: self.addCharts(to: &page)
        case .outputs: self.addSinks(to: &page)
        case .topics: self.addTopics(to: &page)
        case .failures: self.addFailures(to: &page)
        case .holes: self.addHoles(to: &page)
        case .verdicts: self.addVerdicts(to: &page)
        case .runs: self.addRuns(to: &page)
        case .state: self.addState(to: &page)
        }
      }
    }
  }

  private func addSummary(to page: inout HTMLPage) {
    if let last = self.figures.items.last(where: { $0.isRun }) {
      let (text, isGood) = Self.headline(last)
      page.element("p", ["class": isGood ? "good" : "bad"], text: text)
    }
    let (total, figures) = (self.figures.total, self.figures)
    let tiles: [(String, String)] = [
      ("Runs", Self.count(figures.runCount)),
      ("Runs that failed", Self.count(figures.failureCount)),
      ("Last success", figures.lastSuccess.map { Self.time($0.endedAt) } ?? "none"),
      ("Events", Self.count(total.events)),
      ("Events delivered twice", Self.count(total.redelivered)),
      ("Records read", Self.count(total.recordsRead)),
      ("Written to files", ProgressLine.size(total.bytes)),
      ("Dead letters", Self.count(total.deadLetters)),
      ("Gap events", Self.count(total.gaps)),
      ("Unusable positions", Self.count(total.holes)),
      (
        "Last comparison",
        figures.lastVerdict.map { "\($0.verdict), \(Self.time($0.endedAt))" } ?? "none"
      ),
    ]
    page.element("dl", ["class": "tiles"]) { page in
      for (title, value) in tiles {
        page.element("div") { page in
          page.element("dt", text: title)
          page.element("dd", text: value)
        }
      }
    }
  }

  private func addSinks(to page: inout HTMLPage) {
    self.table(
      "Outputs of the recorded runs", columns: ["Sink", "Type", "Place"],
      numbers: ["Rows", "Records read", "Files", "Size"],
      rows: self.figures.sinks.map { sink in
        let hasFiles = sink.type == "files"
        return [
          sink.name, sink.type, sink.target, Self.count(sink.rows), Self.count(sink.rowsRead),
          hasFiles ? Self.count(sink.files) : "", hasFiles ? ProgressLine.size(sink.bytes) : "",
        ]
      }, to: &page)
  }

  private func addTopics(to page: inout HTMLPage) {
    self.table(
      "Topics of the recorded runs", columns: ["Topic", "Complete through"],
      numbers: ["Events", "Rows", "Longest lag", "Epoch", "Next event"],
      rows: self.figures.topics.map { topic in
        [
          topic.name, topic.completeThrough.map(Self.time) ?? "not known",
          Self.count(topic.events), Self.count(topic.rows), Self.duration(topic.lag),
          topic.end.map { "\($0.epoch)" } ?? "", topic.end.map { Self.count($0.ordinal) } ?? "",
        ]
      }, to: &page)
  }

  private func addFailures(to page: inout HTMLPage) {
    self.table(
      "Why runs ended without success", columns: ["Reason", "Last time", "Last message"],
      numbers: ["Exit code", "Runs"],
      rows: self.figures.endings.filter { $0.exitCode != 0 }.map { ending in
        [
          ending.reason, Self.time(ending.lastAt), ending.lastMessage ?? "",
          ending.exitCode < 0 ? "" : "\(ending.exitCode)", Self.count(ending.count),
        ]
      }, to: &page)
    self.table(
      "Attempts that failed and were repeated", columns: ["Place", "Cause"],
      numbers: ["Retries"],
      rows: self.figures.retries.map { [$0.place, $0.code, Self.count($0.count)] }, to: &page)
  }

  private func addHoles(to page: inout HTMLPage) {
    let runs = self.figures.items.reversed().compactMap { item -> RunRecord? in
      guard case .run(let record) = item else { return nil }
      let counts = record.counts
      return counts.gaps + counts.holes + counts.deadLetters > 0 ? record : nil
    }
    self.table(
      "Runs with gap events, unusable positions or dead letters", columns: ["Began"],
      numbers: ["Gap events", "Unusable positions", "Dead letters"],
      rows: runs.map { record in
        [
          Self.time(record.beginning.beganAt), Self.count(record.counts.gaps),
          Self.count(record.counts.holes), Self.count(record.counts.deadLetters),
        ]
      }, to: &page)
  }

  private func addVerdicts(to page: inout HTMLPage) {
    let verdicts = self.figures.items.reversed().compactMap { item -> VerifyRecord? in
      if case .verify(let record) = item { record } else { nil }
    }
    self.table(
      "Verdicts of verify", columns: ["Began", "Compared", "Verdict", "Drift"],
      numbers: ["Objects", "Took"],
      rows: verdicts.map { record in
        let drifting = record.tables.filter { $0.drift > 0 }
        let drift = drifting.prefix(5).map { table in
          "\(table.object) in \(table.sink): \(Self.count(table.drift)) of "
            + Self.count(table.total)
        }
        let more = drifting.count > 5 ? ["\(drifting.count - 5) more"] : []
        return [
          Self.time(record.beganAt), record.compares, record.verdict,
          (drift + more).joined(separator: "; "), Self.count(Int64(record.tables.count)),
          Self.duration(max(0, record.endedAt - record.beganAt)),
        ]
      }, to: &page)
  }

  private func addRuns(to page: inout HTMLPage) {
    self.table(
      "The newest runs, newest first", columns: ["Began", "Result"],
      numbers: ["Took", "Events", "Records read", "Size", "Lag", "Dead letters", "Retries"],
      rows: self.figures.items.reversed().filter(\.isRun).map { item in
        let began = Self.time(item.beganAt)
        guard case .run(let record) = item else { return [began, Self.result(item)] }
        return [
          began, Self.result(item), Self.duration(record.duration),
          Self.count(record.counts.events), Self.count(record.counts.recordsRead),
          ProgressLine.size(record.counts.bytes), Self.duration(record.lag),
          Self.count(record.counts.deadLetters), Self.count(record.retryCount),
        ]
      }, to: &page)
  }

  private func addState(to page: inout HTMLPage) {
    switch self.state {
    case .known(let text, let problems):
      for problem in problems { page.element("p", ["class": "bad"], text: problem) }
      page.element("p", text: "What pubsub-etl status printed when this page was made:")
      page.element("pre", ["tabindex": "0"]) { page in
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
          page.text(String(line))
          page.markup("\n")
        }
      }
    case .unknown(let reason):
      page.element("p", ["class": "bad"], text: "The state could not be read: \(reason)")
    }
  }

  /// Adds a table that a narrow screen can scroll.
  ///
  /// - Parameters:
  ///   - numbers: the titles of the columns after `columns`, which end at the right.
  ///   - rows: the newest first; cells at their end may be missing.
  private func table(
    _ caption: String, columns: [String], numbers: [String], rows: [[String]],
    to page: inout HTMLPage
  ) {
    guard !rows.isEmpty else {
      page.element("p", ["class": "none"], text: "\(caption): none.")
      return
    }
    page.element(
      "div", ["class": "scroll", "role": "region", "tabindex": "0", "aria-label": caption]
    ) { page in
      page.element("table") { page in
        page.element("caption", text: caption)
        page.element("thead") { page in
          page.element("tr") { page in
            for title in columns { page.element("th", ["scope": "col"], text: title) }
            for title in numbers {
              page.element("th", ["scope": "col", "class": "number"], text: title)
            }
          }
        }
        page.element("tbody") { page in
          for row in rows.prefix(Self.maxRowCount) {
            page.element("tr") { page in
              for index in 0..<columns.count + numbers.count {
                let cell = index < row.count ? row[index] : ""
                switch index {
                case 0: page.element("th", ["scope": "row"], text: cell)
                case ..<columns.count: page.element("td", text: cell)
                default: page.element("td", ["class": "number"], text: cell)
                }
              }
            }
          }
        }
      }
    }
    if rows.count > Self.maxRowCount {
      let more = Self.count(Int64(rows.count - Self.maxRowCount))
      page.element("p", ["class": "none"], text: "\(more) more are not shown.")
    }
  }
}

// MARK: Words

extension ReportPage {
  static func count(_ number: Int64) -> String {
    (number < 0 ? "−" : "") + ProgressLine.grouped(Int64(clamping: number.magnitude))
  }

  /// `2026-02-17 03:46:40`
  static func time(_ milliseconds: Int64) -> String {
    String(
      UTCTime.timestamp(milliseconds: milliseconds).prefix(19).map { $0 == "T" ? " " : $0 })
  }

  static func duration(_ milliseconds: Int64?) -> String {
    milliseconds.map { Phrase.duration(.milliseconds($0)) } ?? ""
  }

  private static func result(_ item: RunHistory.Item) -> String {
    switch item {
    case .run(let record): "\(record.exitCode) \(record.reason)"
    case .running: "running"
    case .unreported: "no report"
    case .verify(let record): record.verdict
    }
  }

  private static func headline(_ item: RunHistory.Item) -> (text: String, isGood: Bool) {
    switch item {
    case .run(let record):
      let end = "\(Self.time(record.endedAt)), exit code \(record.exitCode) (\(record.reason))"
      guard record.exitCode != 0 else { return ("The last run succeeded: \(end).", true) }
      guard !record.isProgress else { return ("The last run has made progress: \(end).", true) }
      return ("The last run failed: \(end)" + (record.message.map { ": \($0)" } ?? "."), false)
    case .running(let beginning):
      return ("A run is in progress since \(Self.time(beginning.beganAt)).", true)
    case .unreported(let beginning):
      return (
        "The last run began at \(Self.time(beginning.beganAt)) and left no report: it was killed, "
          + "or the machine went down.", false
      )
    case .verify(let record): return (record.verdict, true)
    }
  }
}

extension RunHistory.Item {
  /// Not a verdict.
  var isRun: Bool {
    if case .verify = self { false } else { true }
  }
}
