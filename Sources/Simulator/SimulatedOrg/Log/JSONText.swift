/// Writes JSON values.
package enum JSONText {
  private static let hex = Array("0123456789abcdef".utf8)

  /// A string; `text` must be UTF-8.
  static func append(_ text: ArraySlice<UInt8>, to bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "\""))
    for byte in text {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"):
        bytes.append(UInt8(ascii: "\\"))
        bytes.append(byte)
      case 0..<0x20:
        bytes += "\\u00".utf8
        bytes.append(Self.hex[Int(byte >> 4)])
        bytes.append(Self.hex[Int(byte & 15)])
      default: bytes.append(byte)
      }
    }
    bytes.append(UInt8(ascii: "\""))
  }

  package static func string(_ text: String) -> String {
    var bytes: [UInt8] = []
    Self.append(Array(text.utf8)[...], to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  static func append(_ value: Double, to bytes: inout [UInt8]) {
    if value.isFinite {
      bytes += value.description.utf8
    } else {
      bytes += (value.isNaN ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"").utf8
    }
  }

  /// 16 digits.
  package static func appendHex(_ value: UInt64, to bytes: inout [UInt8]) {
    for shift in stride(from: 60, through: 0, by: -4) {
      bytes.append(Self.hex[Int(value >> UInt64(shift) & 15)])
    }
  }
}
