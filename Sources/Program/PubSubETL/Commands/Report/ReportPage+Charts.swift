internal import Bytes

extension ReportPage {
  /// Bars, one for each period.
  private struct Chart {
    /// What a bar shows: `Events`.
    var title: String
    /// Nil: not known.
    var values: [Int64?]
    /// A value in words.
    var words: (Int64) -> String
    /// Whether high values are bad.
    var isBad = false
  }

  private var charts: [Chart] {
    let periods = self.figures.periods
    func time(_ milliseconds: Int64) -> String { Self.duration(milliseconds) }
    return [
      Chart(title: "Events", values: periods.map(\.events), words: Self.count),
      Chart(title: "Records read", values: periods.map(\.recordsRead), words: Self.count),
      Chart(
        title: "Written to files", values: periods.map(\.bytes), words: { ProgressLine.size($0) }),
      Chart(title: "Longest lag", values: periods.map(\.longestLag), words: time),
      Chart(title: "Longest run", values: periods.map(\.longestRun), words: time),
      Chart(
        title: "Runs that failed", values: periods.map(\.failures), words: Self.count, isBad: true),
      Chart(title: "Retries", values: periods.map(\.retries), words: Self.count, isBad: true),
      Chart(
        title: "Allowance of events left", values: periods.map(\.allowanceLeft),
        words: Self.count),
    ]
  }

  func addCharts(to page: inout HTMLPage) {
    let isDaily = self.figures.periodLength == RunFigures.day
    guard !self.figures.periods.isEmpty else {
      page.element("p", ["class": "none"], text: "No run is recorded.")
      return
    }
    page.element(
      "p",
      text:
        "By \(isDaily ? "day" : "hour"), according to when runs began. Lag is the time from the "
        + "commit of the newest change in Salesforce until it was durable.")
    page.element("div", ["class": "charts"]) { page in
      for chart in self.charts { self.add(chart, isDaily: isDaily, to: &page) }
    }
  }

  private func add(_ chart: Chart, isDaily: Bool, to page: inout HTMLPage) {
    let labels = self.figures.periods.map { period in
      // A date, or the hour of one.
      String(Self.time(period.beginsAt).prefix(isDaily ? 10 : 16))
    }
    let known = zip(labels, chart.values).compactMap { label, value in value.map { (label, $0) } }
    let highest = known.max { $0.1 < $1.1 }
    let summary =
      highest.map { $0.1 == 0 ? "always 0" : "highest \(chart.words($0.1)), \($0.0)" }
      ?? "not known"
    page.element("figure") { page in
      page.element("figcaption") { page in
        page.element("strong", text: chart.title)
        page.text(": \(summary)")
      }
      self.draw(chart, labels, highest: highest?.1 ?? 0, summary: summary, to: &page)
      page.element("details") { page in
        page.element("summary", text: "\(chart.title) as a table")
        page.element("table") { page in
          page.element("caption", text: chart.title)
          page.element("thead") { page in
            page.element("tr") { page in
              page.element("th", ["scope": "col"], text: isDaily ? "Day" : "Hour")
              page.element("th", ["scope": "col", "class": "number"], text: chart.title)
            }
          }
          page.element("tbody") { page in
            for (label, value) in zip(labels, chart.values).reversed() {
              page.element("tr") { page in
                page.element("th", ["scope": "row"], text: label)
                page.element(
                  "td", ["class": "number"], text: value.map(chart.words) ?? "not known")
              }
            }
          }
        }
      }
    }
  }

  // MARK: Drawing

  /// In units of the drawing.
  private static let width = 320.0
  private static let height = 132.0
  private static let top = 18.0
  private static let bottom = 114.0

  private func draw(
    _ chart: Chart, _ labels: [String], highest: Int64, summary: String, to page: inout HTMLPage
  ) {
    let step = Self.width / Double(max(1, chart.values.count))
    page.element(
      "svg",
      [
        "viewBox": "0 0 \(Int(Self.width)) \(Int(Self.height))", "role": "img",
        "aria-label": "\(chart.title): \(summary). The table after the chart has all values.",
      ]
    ) { page in
      for (index, value) in chart.values.enumerated() {
        guard let value, value > 0 else { continue }
        // So that the lowest can be seen.
        let height = max(
          1.5, (Self.bottom - Self.top) * Double(value) / Double(max(1, highest)))
        page.element(
          "rect",
          [
            "class": chart.isBad ? "bar bad-bar" : "bar",
            "x": Self.number(Double(index) * step + step * 0.1),
            "y": Self.number(Self.bottom - height), "width": Self.number(min(step * 0.8, 24)),
            "height": Self.number(height),
          ]
        ) { page in
          page.element("title", text: "\(labels[index]): \(chart.words(value))")
        }
      }
      let (bottom, width) = (Self.number(Self.bottom), Self.number(Self.width))
      page.element(
        "line", ["class": "axis", "x1": "0", "x2": width, "y1": bottom, "y2": bottom]
      ) { _ in }
      page.element("text", ["x": "0", "y": "11"], text: chart.words(highest))
      let labelY = Self.number(Self.bottom + 14)
      page.element("text", ["x": "0", "y": labelY], text: labels.first ?? "")
      if labels.count > 1 {
        page.element(
          "text", ["x": width, "y": labelY, "text-anchor": "end"], text: labels.last ?? "")
      }
    }
  }

  private static func number(_ value: Double) -> String { "\((value * 10).rounded() / 10)" }
}
