/// The tokens of a SOQL statement.
enum SOQLToken: Equatable {
  /// A keyword, field or object; `a.b` is one.
  case name(String)
  case string([UInt8])
  case number(Double)
  /// Milliseconds since 1970.
  case date(Int64)
  case dateTime(Int64)
  /// `( ) , = != < <= > >=`
  case symbol(String)
}

enum SOQLLexer {
  static func tokens(of text: String) throws(APIRefusal) -> [SOQLToken] {
    var bytes = Array(text.utf8)[...]
    var tokens: [SOQLToken] = []
    while let byte = bytes.first {
      switch byte {
      case 0x20, 0x09, 0x0A, 0x0D: bytes.removeFirst()
      case UInt8(ascii: "'"): tokens.append(.string(try Self.string(&bytes)))
      case UInt8(ascii: "("), UInt8(ascii: ")"), UInt8(ascii: ","), UInt8(ascii: "="):
        tokens.append(.symbol(String(UnicodeScalar(byte))))
        bytes.removeFirst()
      case UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "!"):
        bytes.removeFirst()
        var symbol = String(UnicodeScalar(byte))
        if bytes.first == UInt8(ascii: "=") {
          symbol += "="
          bytes.removeFirst()
        } else if byte == UInt8(ascii: "<"), bytes.first == UInt8(ascii: ">") {
          symbol = "!="
          bytes.removeFirst()
        }
        guard symbol != "!" else { throw .malformed("unexpected token: '!'") }
        tokens.append(.symbol(symbol))
      case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "+"):
        tokens.append(try Self.numeric(&bytes))
      case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"):
        let name = bytes.prefix {
          (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) || (0x61...0x7A).contains($0)
            || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: ".")
        }
        tokens.append(.name(String(decoding: name, as: UTF8.self)))
        bytes = bytes[name.endIndex...]
      default:
        throw .malformed("unexpected token: '\(UnicodeScalar(byte))'")
      }
    }
    return tokens
  }

  private static func string(_ bytes: inout ArraySlice<UInt8>) throws(APIRefusal) -> [UInt8] {
    var text: [UInt8] = []
    bytes.removeFirst()
    while let byte = bytes.popFirst() {
      switch byte {
      case UInt8(ascii: "'"): return text
      case UInt8(ascii: "\\"):
        switch bytes.popFirst() {
        case UInt8(ascii: "n"): text.append(10)
        case UInt8(ascii: "r"): text.append(13)
        case UInt8(ascii: "t"): text.append(9)
        case let other?: text.append(other)
        case nil: break
        }
      default: text.append(byte)
      }
    }
    throw .malformed("unexpected end of string")
  }

  /// A number, `2026-02-17`, or `2026-02-17T04:03:15Z` with a zone.
  private static func numeric(_ bytes: inout ArraySlice<UInt8>) throws(APIRefusal) -> SOQLToken {
    let word = bytes.prefix { !" \t\r\n),(".utf8.contains($0) }
    bytes = bytes[word.endIndex...]
    let text = String(decoding: word, as: UTF8.self)
    if let number = Double(text) { return .number(number) }
    let parts = text.split(separator: "T", maxSplits: 1, omittingEmptySubsequences: false)
    let date = parts[0].split(separator: "-").compactMap { Int64($0) }
    guard date.count == 3, parts[0].count == 10,
      let day = CivilDate.day(year: date[0], month: date[1], day: date[2])
    else { throw .malformed("line 1: unexpected token: '\(text)'") }
    guard parts.count == 2 else { return .date(day * 86_400_000) }
    guard let time = Self.time(parts[1]) else {
      throw .malformed("line 1: unexpected token: '\(text)'")
    }
    return .dateTime(day * 86_400_000 + time)
  }

  /// `04:03:15Z`, `04:03:15.000+01:00`, as milliseconds; whole seconds are compared.
  private static func time(_ text: Substring) -> Int64? {
    let clock = text.prefix(8).split(separator: ":").compactMap { Int64($0) }
    guard clock.count == 3, clock[0] < 24, clock[1] < 60, clock[2] < 60 else { return nil }
    var zone = text.dropFirst(8)
    if zone.first == "." { zone = zone.dropFirst().drop { $0.isNumber } }
    let seconds = clock[0] * 3600 + clock[1] * 60 + clock[2]
    if zone == "Z" { return seconds * 1000 }
    guard let sign = zone.first, sign == "+" || sign == "-" else { return nil }
    let offset = zone.dropFirst().filter { $0 != ":" }
    guard offset.count == 4, let number = Int64(offset) else { return nil }
    let difference = (number / 100 * 3600 + number % 100 * 60) * (sign == "+" ? 1 : -1)
    return (seconds - difference) * 1000
  }
}
