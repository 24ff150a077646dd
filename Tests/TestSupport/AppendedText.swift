package import Bytes

/// What a call appends, as text; what stood before it must still stand.
package func appended(_ append: (inout ByteBuffer) -> Void) -> String {
  var buffer = ByteBuffer(capacity: 16)
  buffer.append(utf8: "<")
  append(&buffer)
  precondition(buffer.bytes.first == UInt8(ascii: "<"), "the bytes before were overwritten")
  return String(decoding: buffer.bytes.dropFirst(), as: UTF8.self)
}
