/// Rows for people, in columns that begin at the same place.
enum TextTable {
  /// Lines, each ended. The last cell of a row is not padded, and empty cells at its end leave no
  /// spaces. Line ends in a cell are shown as `\n`.
  ///
  /// - Parameter rows: the cells of each row.
  static func lines(_ rows: [[String]]) -> String {
    let rows = rows.map { $0.map { PrintableText.line($0) } }
    var widths: [Int] = []
    for row in rows {
      for (index, cell) in row.enumerated() {
        if index == widths.count { widths.append(0) }
        widths[index] = max(widths[index], cell.count)
      }
    }
    return rows.map { row in
      var line = ""
      for (index, cell) in row.enumerated() {
        line += cell + String(repeating: " ", count: widths[index] - cell.count + 2)
      }
      while line.last == " " { line.removeLast() }
      return line + "\n"
    }.joined()
  }
}
