extension String {
  /// The displayable part of a server's text: printable characters on one line.
  package func shown(upTo count: Int) -> String {
    String(
      self.prefix(count).map { $0.isNewline || $0 == "\t" ? " " : $0 }.filter {
        $0.unicodeScalars.allSatisfy {
          $0.properties.generalCategory != .control && $0.properties.generalCategory != .format
        }
      })
  }
}
