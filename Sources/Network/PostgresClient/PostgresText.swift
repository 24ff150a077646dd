internal import Glibc

/// Text as the server can hold it.
package enum PostgresText {
  /// The text with U+FFFD for U+0000, which PostgreSQL has no place for.
  package static func storable(_ text: String) -> String {
    var text = text
    let hasNull = text.withUTF8 { bytes in
      bytes.baseAddress.map { memchr($0, 0, bytes.count) != nil } ?? false
    }
    guard hasNull else { return text }
    return String(
      String.UnicodeScalarView(text.unicodeScalars.map { $0 == "\0" ? "\u{FFFD}" : $0 }))
  }
}
