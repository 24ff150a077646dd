internal import Bytes

/// Runs as lines of at most 80 columns.
enum RunTable {
  static let columns = 80
  /// The widths of all columns but the last: their sum with the last and the spaces between is
  /// `columns`.
  private static let widths = [16, 7, 20, 7, 7, 4, 7]
  private static let titles = [
    "began (UTC)", "took", "result", "events", "read", "dead", "retries",
  ]
  /// Text begins at the left, numbers end at the right.
  private static let textColumns: Set = [0, 2]

  static func lines(_ items: [RunHistory.Item]) -> String {
    ([Self.titles] + items.map(Self.cells)).map(Self.line).joined()
  }

  private static func line(_ cells: [String]) -> String {
    var line = ""
    for (index, cell) in cells.enumerated() {
      let (width, cell) = (Self.widths[index], PrintableText.line(cell).cut(to: Self.widths[index]))
      let space = String(repeating: " ", count: max(0, width - cell.unicodeScalars.count))
      line +=
        (index > 0 ? "  " : "") + (Self.textColumns.contains(index) ? cell + space : space + cell)
    }
    while line.last == " " { line.removeLast() }
    return line + "\n"
  }

  private static func cells(_ item: RunHistory.Item) -> [String] {
    let began = String(
      UTCTime.timestamp(milliseconds: item.beganAt).prefix(16).map { $0 == "T" ? " " : $0 })
    switch item {
    case .run(let record):
      let counts = record.counts
      return [
        began, Self.time(record.duration), "\(record.exitCode) \(record.reason)",
        Self.number(counts.events, width: 7), Self.number(counts.recordsRead, width: 7),
        Self.number(counts.deadLetters, width: 4), Self.number(record.retryCount, width: 7),
      ]
    case .running: return [began, "", "running"]
    case .unreported: return [began, "", "no report"]
    case .verify(let record):
      return [
        began, Self.time(max(0, record.endedAt - record.beganAt)), "verify: \(record.verdict)",
      ]
    }
  }

  /// `0:12`, `1:02:05`, `26 h`: at most seven columns.
  static func time(_ milliseconds: Int64) -> String {
    func padded(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
    let seconds = milliseconds / 1000
    switch seconds {
    case ..<3600: return "\(seconds / 60):\(padded(seconds % 60))"
    case ..<36_000:
      return "\(seconds / 3600):\(padded(seconds / 60 % 60)):\(padded(seconds % 60))"
    case ..<360_000: return "\(seconds / 3600) h"
    default: return "\(Self.number(seconds / 86_400, width: 5)) d"
    }
  }

  /// The number, in thousands, millions and so on if it would be too wide.
  ///
  /// - Parameters:
  ///   - number: 0 or more.
  ///   - width: 4 or more.
  static func number(_ number: Int64, width: Int) -> String {
    var number = number
    var text = ProgressLine.grouped(number)
    for unit in ["k", "M", "G", "T", "P", "E"] where text.utf8.count > width {
      number /= 1000
      text = "\(ProgressLine.grouped(number))\(unit)"
    }
    return text
  }
}
