/// Kinds of ASCII characters, as bytes of a text.
extension UInt8 {
  @inlinable package var isDigit: Bool { self >= 0x30 && self <= 0x39 }
  @inlinable package var isUpperCaseLetter: Bool { self >= 0x41 && self <= 0x5A }
  @inlinable package var isLetter: Bool { self | 0x20 >= 0x61 && self | 0x20 <= 0x7A }
  @inlinable package var isAlphanumeric: Bool { self.isLetter || self.isDigit }

  /// A letter, a digit or `_`: a part of a name.
  @inlinable package var isWordCharacter: Bool { self.isAlphanumeric || self == 0x5F }

  /// The value of a hexadecimal digit in either case; nil for any other character.
  @inlinable package var hexDigit: UInt8? {
    switch self {
    case 0x30...0x39: self - 0x30
    case 0x41...0x46: self - 0x37
    case 0x61...0x66: self - 0x57
    default: nil
    }
  }
}
