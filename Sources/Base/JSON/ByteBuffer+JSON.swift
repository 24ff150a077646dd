package import Bytes

// Appending JSON text (RFC 8259). Nothing here allocates but the growth of the buffer.

extension ByteBuffer {
  /// Appends a JSON string with its quotes.
  ///
  /// - Parameter utf8: valid UTF-8, which is not checked. Quote, reverse solidus and U+0000–U+001F
  ///   are escaped, in the short form where JSON has one; everything else goes out as it is.
  package mutating func appendJSONString(_ utf8: UnsafeBufferPointer<UInt8>) {
    let quote = UInt8(ascii: "\"")
    let count = utf8.count
    let start = self.reserve(count + 10)
    start.pointee = quote
    let out = UnsafeMutableRawPointer(start + 1)
    guard let base = utf8.baseAddress, count > 0 else {
      start[1] = quote
      self.commit(2)
      return
    }
    let source = UnsafeRawPointer(base)
    var clean = 0
    if count >= 16 {
      // Two words at a time; the last two overlap those before, so nothing is read past the end.
      let last = count - 16
      while true {
        let first = source.loadUnaligned(fromByteOffset: clean, as: UInt64.self)
        let second = source.loadUnaligned(fromByteOffset: clean &+ 8, as: UInt64.self)
        if (escapes(in: first) | escapes(in: second)) != 0 { break }
        out.storeBytes(of: first, toByteOffset: clean, as: UInt64.self)
        out.storeBytes(of: second, toByteOffset: clean &+ 8, as: UInt64.self)
        if clean == last {
          clean = count
          break
        }
        clean = min(clean &+ 16, last)
      }
    } else if count >= 8 {
      let last = count - 8
      while true {
        let word = source.loadUnaligned(fromByteOffset: clean, as: UInt64.self)
        if escapes(in: word) != 0 { break }
        out.storeBytes(of: word, toByteOffset: clean, as: UInt64.self)
        if clean == last {
          clean = count
          break
        }
        clean = min(clean &+ 8, last)
      }
    } else {
      while clean < count, !needsEscape(base[clean]) {
        (start + 1)[clean] = base[clean]
        clean += 1
      }
    }
    guard clean == count else {
      self.commit(1 + clean)
      self.appendEscaped(UnsafeBufferPointer(rebasing: utf8[clean...]))
      self.append(quote)
      return
    }
    start[count + 1] = quote
    self.commit(count + 2)
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

  /// The rest of a string in which something is to be escaped, without quotes.
  @inline(never)
  private mutating func appendEscaped(_ utf8: UnsafeBufferPointer<UInt8>) {
    // In pieces, so that the room for the worst case (6 bytes each) stays small.
    var rest = utf8[...]
    while !rest.isEmpty {
      let piece = rest.prefix(1024)
      rest = rest.dropFirst(1024)
      let start = self.reserve(piece.count * 6)
      var out = start
      for byte in piece {
        guard needsEscape(byte) else {
          out.pointee = byte
          out += 1
          continue
        }
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
          out[5] =
            byte & 15 < 10 ? UInt8(ascii: "0") + byte & 15 : UInt8(ascii: "a") - 10 + byte & 15
          out += 4
        }
        out += 2
      }
      self.commit(out - start)
    }
  }
}

@inline(__always)
private func needsEscape(_ byte: UInt8) -> Bool {
  byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
}

/// Not zero when any of the eight bytes needs an escape; bytes from 0x80 on never do.
///
/// A byte is zero or below n exactly when subtracting borrows into its top bit while that bit was
/// clear (Mycroft's test); a borrow can spread only from a byte that is a hit itself.
@inline(__always)
private func escapes(in word: UInt64) -> UInt64 {
  let ones: UInt64 = 0x0101_0101_0101_0101
  let tops: UInt64 = 0x8080_8080_8080_8080
  let quotes = word ^ (ones &* 0x22)
  let solidi = word ^ (ones &* 0x5C)
  let controls = (word &- ones &* 0x20) & ~word
  return ((quotes &- ones) & ~quotes | (solidi &- ones) & ~solidi | controls) & tops
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
