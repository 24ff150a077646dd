/// The values of a record from JSON.
package struct RowTexts: RecordTexts {
  private let storage: Storage
  private let ends: [Int]

  /// Bytes whose address stays the same.
  private final class Storage: Sendable {
    // Written only by `init`.
    nonisolated(unsafe) let bytes: UnsafeMutableRawBufferPointer

    init(_ source: [UInt8]) {
      self.bytes = .allocate(byteCount: source.count, alignment: 1)
      self.bytes.copyBytes(from: source)
    }

    deinit { self.bytes.deallocate() }
  }

  package init(_ values: some Sequence<String>) { self.init(utf8: values.map { Array($0.utf8) }) }

  init(utf8 values: [[UInt8]]) {
    self.storage = Storage(Array(values.joined()))
    var end = 0
    self.ends = values.map { value in
      end += value.count
      return end
    }
  }

  package var count: Int { self.ends.count }

  func withText<Value>(_ body: (UnsafeRawBufferPointer) -> Value) -> Value { body(self[0]) }

  /// Valid for the lifetime of the texts.
  package subscript(_ index: Int) -> UnsafeRawBufferPointer {
    let start = index == 0 ? 0 : self.ends[index - 1]
    return UnsafeRawBufferPointer(rebasing: self.storage.bytes[start..<self.ends[index]])
  }
}
