import Cryptography
import EventLoop
import Pipeline
import TestSupport
import Testing

@testable import PubSubETL

@Suite("Report page") struct ReportPageTests {
  private func page(
    _ items: [RunHistory.Item], pipeline: String = "opps", remark: String? = nil,
    state: ReportPage.State = .unknown("not read"), secrets: SecretMask = SecretMask()
  ) -> String {
    ReportPage(
      pipeline: pipeline, figures: RunFigures(items), remark: remark, state: state,
      madeAt: 1_771_300_000_000
    ).html(hiding: secrets).source
  }

  private func items(seed: UInt64, count: Int) -> [RunHistory.Item] {
    var sample = LedgerSample(seed: seed)
    return (0..<count).map { _ in
      switch sample.entry() {
      case .began(let beginning): .unreported(beginning)
      case .run(let record): .run(record)
      case .verify(let record): .verify(record)
      }
    }
  }

  /// Every tag, without the values of its attributes; nil if there is something else that begins like one.
  private func tags(_ page: String) -> [String]? {
    let text = page.dropFirst(ReportPage.beginning.description.count)
    let tag = #/<(/?[a-z0-9]+)((?: [a-z0-9-]+="[^"<>]*")*)>/#.wordBoundaryKind(.simple)
    var found: [String] = []
    for match in text.matches(of: tag) {
      let names = match.output.2.matches(of: #/ ([a-z0-9-]+)="/#).map { String($0.output.1) }
      found.append(([String(match.output.1)] + names).joined(separator: " "))
    }
    let count = text.utf8.count { $0 == UInt8(ascii: "<") }
    return count == found.count ? found : nil
  }

  @Test("Names and messages of others are text: no element, attribute or address comes of them")
  func hostile() throws {
    let allowed: Set = [
      "html", "head", "meta", "title", "style", "body", "header", "main", "nav", "section", "h1",
      "h2", "p", "ul", "li", "a", "dl", "div", "dt", "dd", "figure", "figcaption", "strong", "svg",
      "rect", "line", "text", "details", "summary", "table", "caption", "thead", "tbody", "tr",
      "th", "td", "pre",
    ]
    let attributes: Set = [
      "lang", "charset", "http-equiv", "content", "name", "class", "id", "href", "scope", "role",
      "tabindex", "aria-label", "aria-labelledby", "viewBox", "x", "y", "x1", "x2", "y1", "y2",
      "width", "height", "text-anchor",
    ]
    let attack =
      #"</title></style></script><script>alert(1)</script><img src=x onerror='alert(1)'>" onload="x" '--><!--"#
    for seed in 31...34 as ClosedRange<UInt64> {
      let page = self.page(
        self.items(seed: seed, count: 40), pipeline: attack, remark: attack,
        state: .known(LedgerSample.hostileTexts.joined() + attack, problems: [attack]))
      let tags = try #require(self.tags(page.replacing("viewBox", with: "viewbox")))
      for tag in tags {
        let words = tag.replacing("viewbox", with: "viewBox").split(separator: " ").map(String.init)
        let name = words[0].hasPrefix("/") ? String(words[0].dropFirst()) : words[0]
        #expect(allowed.contains(name), "\(tag)")
        #expect(attributes.isSuperset(of: words.dropFirst()), "\(tag)")
      }
      // Each has a beginning and an end, except for the one that can have nothing inside.
      var open: [String] = []
      for tag in tags {
        let name = tag.split(separator: " ").first.map(String.init) ?? ""
        if name.hasPrefix("/") {
          #expect(open.popLast() == String(name.dropFirst()))
        } else if name != "meta" {
          open.append(name)
        }
      }
      #expect(open.isEmpty)
      for address in page.matches(of: #/href="([^"]*)"/#) {
        #expect(address.output.1.hasPrefix("#"))
      }
      #expect(!page.contains("\u{202E}") && !page.contains("\u{1B}") && !page.contains("\u{0}"))
    }
  }

  @Test("The policy allows the page's own style and nothing else")
  func policy() throws {
    let page = self.page([])
    let style = try #require(page.firstMatch(of: #/<style>([^<]*)</style>/#)?.output.1)
    let expected = SHA256.hash(of: Array(style.utf8)).bytes
    let policy = try #require(
      page.firstMatch(of: #/Content-Security-Policy" content="([^"]*)"/#)?.output.1)
    let hash = try #require(policy.firstMatch(of: #/sha256-([A-Za-z0-9+/]{43}=)/#)?.output.1)
    #expect(
      policy
        == "default-src &#39;none&#39;; style-src &#39;sha256-\(hash)&#39;; base-uri &#39;none&#39;; form-action &#39;none&#39;"
    )
    #expect(Self.bytes(ofBase64: hash) == expected)
    for address in ["http:", "https:", "url(", "@import", "src="] {
      #expect(!page.contains(address), "\(address)")
    }
  }

  private static func bytes(ofBase64 text: Substring) -> [UInt8] {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
    var (bits, count, bytes) = (0, 0, [UInt8]())
    for character in text {
      guard let value = alphabet.firstIndex(of: character) else { break }
      (bits, count) = ((bits << 6 | value) & 0xFFFF, count + 6)
      if count >= 8 {
        count -= 8
        bytes.append(UInt8(truncatingIfNeeded: bits >> count))
      }
    }
    return bytes
  }

  @Test("A secret that an error repeats is not on the page")
  func secrets() {
    let secrets = SecretMask()
    secrets.add("correct-horse&battery")
    var sample = LedgerSample(seed: 35)
    var record = sample.run()
    (record.exitCode, record.message) = (77, "the server said: correct-horse&battery is wrong")
    let page = self.page(
      [.run(record)], state: .known("correct-horse&battery\n", problems: []), secrets: secrets)
    #expect(page.contains("the server said: &lt;redacted&gt; is wrong"))
    #expect(!page.contains("correct-horse"))
  }

  @Test("A pipeline that has never run has a page, which says so")
  func empty() {
    let page = self.page([])
    #expect(page.contains("No run is recorded."))
    #expect(page.contains("The state could not be read: not read"))
  }

  @Test("Figures are the sums of all runs, by hour within two days and by day otherwise")
  func figures() {
    func run(
      _ hours: Int64, exitCode: Int32 = 0, events: Int64 = 0, lag: Int64? = nil
    ) -> RunHistory.Item {
      let begin = 1_771_300_800_000 + hours * 3_600_000
      var record = RunRecord(
        beginning: RunBeginning(
          id: RunID(1), version: "1", command: .run, processID: 1, beganAt: begin),
        endedAt: begin + 1000 * (hours + 1), exitCode: exitCode, reason: "r\(exitCode)")
      record.counts.events = events
      record.retries = [RunRecord.Retry(place: "topic", code: "quota", count: events)]
      record.topics = [
        RunRecord.Topic(
          name: "/data/A", events: events, rows: 2 * events,
          end: StreamPlace(epoch: 1, ordinal: events), lag: lag)
      ]
      record.allowance = OrgAllowance(max: 100, remaining: 50 - hours)
      return .run(record)
    }
    let figures = RunFigures([
      run(0, events: 3, lag: 500), run(0, exitCode: 75), run(2, events: 4, lag: 100),
    ])
    #expect(figures.periods.map(\.events) == [3, 0, 4])
    #expect(figures.periods.map(\.failures) == [1, 0, 0])
    #expect(figures.periods.map(\.longestLag) == [500, nil, 100])
    #expect(figures.periods.map(\.longestRun) == [1000, nil, 3000])
    #expect(figures.periods.map(\.allowanceLeft) == [50, nil, 48])
    #expect(figures.total.events == 7 && figures.runCount == 3 && figures.failureCount == 1)
    #expect(figures.lastSuccess?.endedAt == Int64(1_771_308_003_000))
    #expect(figures.endings.map(\.count) == [2, 1])
    #expect(figures.retries == [RunRecord.Retry(place: "topic", code: "quota", count: 7)])
    #expect(figures.topics.map(\.events) == [7] && figures.topics.first?.rows == 14)
    #expect(figures.topics.first?.lag == 500 && figures.topics.first?.end?.ordinal == 4)

    let long = RunFigures((0..<100).map { run($0 * 24, events: 1) })
    #expect(long.periodLength == RunFigures.day)
    #expect(long.periods.count == 60 && long.periods.allSatisfy { $0.events == 1 })
    #expect(long.total.events == 100)
  }

  @Test("Runs that a hostile ledger has made up do not stop the page")
  func extremes() {
    func run(_ time: Int64) -> RunHistory.Item {
      var record = RunRecord(
        beginning: RunBeginning(
          id: RunID(1), version: "1", command: .run, processID: 1, beganAt: time),
        endedAt: CommitTime.range.lowerBound, exitCode: 0, reason: "caught_up")
      for (_, path) in RunRecord.Counts.members {
        record.counts[keyPath: path] = RunRecord.Counts.maxCount
      }
      return .run(record)
    }
    let (first, last) = (CommitTime.range.lowerBound, CommitTime.range.upperBound)
    let figures = RunFigures([run(last), run(first), run(0)])
    #expect(figures.periods.count == 60)
    #expect(figures.total.events == 3 * RunRecord.Counts.maxCount)
    #expect(self.page([run(last), run(first)]).hasSuffix("</html>\n"))
  }

  @Test("A page replaces an earlier page or an empty file, and no other file")
  func replaces() throws {
    let sample = try SamplePipeline()
    let configuration = try sample.load()
    let page = try ReportPage.read(configuration, now: 1_771_300_000_000)
    try sample.write(PrintableText(page: page.html(hiding: SecretMask())).text, to: "earlier.html")
    try sample.write("", to: "empty.html")
    try sample.write("<!doctype html>\n<p>Mine</p>", to: "other.html")
    for path in ["earlier.html", "empty.html", "missing.html"] {
      try ReportDestination("\(sample.base)/\(path)").check(
        against: configuration, mayReplace: .page)
    }
    for path in ["other.html", "pipeline.json"] {
      let failure = #expect(throws: ReportDestination.Failure.self) {
        try ReportDestination("\(sample.base)/\(path)").check(
          against: configuration, mayReplace: .page)
      }
      #expect(failure?.description.contains("name another file") == true, "\(path)")
    }
  }
}
