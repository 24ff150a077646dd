package import Bytes

// Appending JSON text (RFC 8259). Nothing here allocates but the growth of the buffer.

extension ByteBuffer {
  /// Appends a JSON string with its quotes.
  ///
  /// - Parameter utf8: valid UTF-8, which is not checked. Quote, reverse solidus and U+0000–U+001F
  ///   are escaped, in the short form where JSON has one; everything else goes out as it is.
  package mutating func appendJSONString(_ utf8: UnsafeBufferPointer<UInt8>) {
    self.append(UInt8(ascii: "\""))
    self.appendJSONStringRest(utf8)
  }

  /// Appends what follows the opening quote of a JSON string, which is part of what was appended
  /// before.
  ///
  /// - Parameter utf8: as for `appendJSONString`.
  package mutating func appendJSONStringRest(_ utf8: UnsafeBufferPointer<UInt8>) {
    let count = utf8.count
    let start = self.reserve(count + 1)
    guard let base = utf8.baseAddress, count > 0 else {
      start.pointee = UInt8(ascii: "\"")
      self.commit(1)
      return
    }
    let clean = Self.copyClean(base, count, to: start)
    guard clean == count else {
      self.commit(clean)
      self.appendEscaped(UnsafeBufferPointer(rebasing: utf8[clean...]))
      return
    }
    start[count] = UInt8(ascii: "\"")
    self.commit(count + 1)
  }

  /// Copies bytes up to the first that needs an escape, or less, and returns how many.
  @inline(__always)
  private static func copyClean(
    _ base: UnsafePointer<UInt8>, _ count: Int, to start: UnsafeMutablePointer<UInt8>
  ) -> Int {
    let source = UnsafeRawPointer(base)
    let out = UnsafeMutableRawPointer(start)
    // The last piece overlaps the one before, so nothing is read past the end.
    if count >= 16 {
      let last = count - 16
      var offset = 0
      while true {
        let piece = source.loadUnaligned(fromByteOffset: offset, as: SIMD2<UInt64>.self)
        if escapes(in: piece) != 0 { return offset }
        out.storeBytes(of: piece, toByteOffset: offset, as: SIMD2<UInt64>.self)
        if offset == last { return count }
        offset = min(offset &+ 16, last)
      }
    }
    if count >= 8 {
      let first = source.loadUnaligned(as: UInt64.self)
      let last = source.loadUnaligned(fromByteOffset: count &- 8, as: UInt64.self)
      if escapes(in: SIMD2(first, last)) != 0 { return 0 }
      out.storeBytes(of: first, as: UInt64.self)
      out.storeBytes(of: last, toByteOffset: count &- 8, as: UInt64.self)
      return count
    }
    if count >= 4 {
      let first = source.loadUnaligned(as: UInt32.self)
      let last = source.loadUnaligned(fromByteOffset: count &- 4, as: UInt32.self)
      if escapes(in: UInt64(first) | UInt64(last) << 32) != 0 { return 0 }
      out.storeBytes(of: first, as: UInt32.self)
      out.storeBytes(of: last, toByteOffset: count &- 4, as: UInt32.self)
      return count
    }
    var clean = 0
    while clean < count, !needsEscape(base[clean]) {
      start[clean] = base[clean]
      clean += 1
    }
    return clean
  }

  package mutating func appendJSONString(_ text: String) {
    var text = text
    text.withUTF8 { self.appendJSONString($0) }
  }

  /// The number, always with `.` or an exponent, or `null` for NaN and infinities, which JSON
  /// does not have.
  package mutating func appendJSON(_ value: Double) {
    if value.isFinite { self.append(value) } else { self.append(utf8: "null") }
  }

  package mutating func appendJSON(_ value: Float) {
    if value.isFinite { self.append(value) } else { self.append(utf8: "null") }
  }

  package mutating func appendJSON(_ value: Bool) {
    if value { self.append(utf8: "true") } else { self.append(utf8: "false") }
  }

  /// The rest of a string in which something is to be escaped, with its closing quote.
  @inline(never)
  private mutating func appendEscaped(_ utf8: UnsafeBufferPointer<UInt8>) {
    // In pieces, so that the room for the worst case (6 bytes each) stays small.
    var rest = utf8[...]
    while !rest.isEmpty {
      let piece = UnsafeBufferPointer(rebasing: rest.prefix(1024))
      rest = rest.dropFirst(1024)
      let start = self.reserve(piece.count * 6 + 8)
      var out = start
      var index = 0
      while index < piece.count {
        if index &+ 8 <= piece.count {
          let word = UnsafeRawBufferPointer(piece).loadUnaligned(
            fromByteOffset: index, as: UInt64.self)
          let found = escapes(in: UInt64(littleEndian: word))
          UnsafeMutableRawPointer(out).storeBytes(of: word, as: UInt64.self)
          // The lowest bit is that of the first byte to escape; higher ones may be wrong.
          let clean = found == 0 ? 8 : found.trailingZeroBitCount &>> 3
          out += clean
          index &+= clean
          if found == 0 { continue }
        }
        let byte = piece[index]
        index &+= 1
        if needsEscape(byte) {
          out = writeEscape(of: byte, to: out)
        } else {
          out.pointee = byte
          out += 1
        }
      }
      self.commit(out - start)
    }
    self.append(UInt8(ascii: "\""))
  }
}

/// Returns the end of at most 6 bytes.
private func writeEscape(
  of byte: UInt8, to out: UnsafeMutablePointer<UInt8>
) -> UnsafeMutablePointer<UInt8> {
  out[0] = UInt8(ascii: "\\")
  switch byte {
  case UInt8(ascii: "\""), UInt8(ascii: "\\"): out[1] = byte
  case 0x08: out[1] = UInt8(ascii: "b")
  case 0x09: out[1] = UInt8(ascii: "t")
  case 0x0A: out[1] = UInt8(ascii: "n")
  case 0x0C: out[1] = UInt8(ascii: "f")
  case 0x0D: out[1] = UInt8(ascii: "r")
  default:
    out[1] = UInt8(ascii: "u")
    out[2] = UInt8(ascii: "0")
    out[3] = UInt8(ascii: "0")
    out[4] = UInt8(ascii: "0") + byte >> 4
    out[5] = byte & 15 < 10 ? UInt8(ascii: "0") + byte & 15 : UInt8(ascii: "a") - 10 + byte & 15
    return out + 6
  }
  return out + 2
}

@inline(__always)
private func needsEscape(_ byte: UInt8) -> Bool {
  byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
}

/// Not zero when any of the bytes needs an escape; bytes from 0x80 on never do. In a single word of
/// little-endian order, the lowest bit is in the first such byte.
///
/// A byte is zero or below n exactly when subtracting borrows into its top bit while that bit was
/// clear (Mycroft's test); a borrow can spread only from a byte that is a hit itself.
@inline(__always)
private func escapes(in word: UInt64) -> UInt64 {
  let ones: UInt64 = 0x0101_0101_0101_0101
  let quotes = (word ^ (ones &* 0x22)) &- ones
  let solidi = (word ^ (ones &* 0x5C)) &- ones
  let controls = word &- ones &* 0x20
  return (quotes | solidi | controls) & ~word & (ones &* 0x80)
}

@inline(__always)
private func escapes(in words: SIMD2<UInt64>) -> UInt64 {
  let ones = SIMD2(repeating: 0x0101_0101_0101_0101 as UInt64)
  let quotes = (words ^ (ones &* 0x22)) &- ones
  let solidi = (words ^ (ones &* 0x5C)) &- ones
  let controls = words &- ones &* 0x20
  let found = (quotes | solidi | controls) & ~words
  return (found[0] | found[1]) & 0x8080_8080_8080_8080
}

extension ByteBuffer {
  /// Appends `{"months":1,"days":2,"milliseconds":3}`.
  ///
  /// - Parameter bytes: three little-endian numbers of four bytes each (Avro 1.12, "Duration").
  package mutating func appendDuration(_ bytes: UnsafeBufferPointer<UInt8>) {
    precondition(bytes.count == 12, "a duration of \(bytes.count) bytes")
    let raw = UnsafeRawBufferPointer(bytes)
    func part(_ offset: Int) -> UInt64 {
      UInt64(UInt32(littleEndian: raw.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
    }
    self.append(utf8: "{\"months\":")
    self.append(part(0))
    self.append(utf8: ",\"days\":")
    self.append(part(4))
    self.append(utf8: ",\"milliseconds\":")
    self.append(part(8))
    self.append(UInt8(ascii: "}"))
  }
}
