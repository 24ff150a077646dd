import JSON

extension JSONValue {
  /// As much of a value as one looks at.
  var shown: String {
    let text = self.text(.spaced)
    let longest = 200
    guard text.utf8.count > longest, text.count > longest else { return text }
    let rest = ProgressLine.grouped(Int64(text.count - longest))
    return text.prefix(longest) + "… (\(rest) more characters)"
  }
}
