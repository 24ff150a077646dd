import Pipeline
import Testing

@testable import PubSubETL

/// The page Metrics.md has the table of all metrics.
@Suite("The page of metrics") struct MetricsPageTests {
  private static let page = "\(RepositoryPages.book)/Metrics.md"

  private static func row(_ metric: Metric) -> String {
    let labels = metric.labels.map(\.rawValue).filter { $0 != "pipeline" }
    let place =
      switch metric.place {
      case .both: ""
      case .endpoint: "endpoint"
      case .textfile: "textfile"
      }
    return "| `\(metric.fullName)` | \(metric.kind.rawValue) | \(labels.joined(separator: ", ")) | "
      + "\(place) | \(metric.help) |"
  }

  @Test("The table has every metric as the program declares it, in this order")
  func table() throws {
    let rows = try RepositoryPages.text(Self.page).split(separator: "\n")
      .filter { $0.hasPrefix("| `pubsub_etl_") }.map(String.init)
    #expect(rows == Metric.all.map(Self.row))
  }

  @Test("The page has the bounds of the histograms")
  func bounds() throws {
    let text = try RepositoryPages.text(Self.page)
    for metric in Metric.all {
      guard let bounds = metric.buckets?.bounds else { continue }
      let numbers = bounds.map { $0 == $0.rounded() ? "\(Int($0))" : "\($0)" }
      #expect(text.contains(numbers.joined(separator: ", ")), "\(metric.fullName)")
    }
  }

  @Test("Rules, dashboard and page name no metric that does not exist")
  func references() throws {
    let names = Set(
      Metric.all.flatMap { metric -> [String] in
        let suffixes = metric.kind == .histogram ? ["_bucket", "_sum", "_count"] : [""]
        return suffixes.map { metric.fullName + $0 }
      })
    let files = try RepositoryPages.files(in: ["deploy"], suffixes: [".yml", ".json"])
    #expect(files.count >= 2)
    var count = 0
    for file in files + [Self.page] {
      for match in try RepositoryPages.text(file).matches(of: /pubsub_etl_[a-z_]+/) {
        count += 1
        let name = String(match.output)
        #expect(
          names.contains(name) || Metric.all.contains { $0.fullName == name }, "\(file): \(name)")
      }
    }
    #expect(count > 50)
  }
}
