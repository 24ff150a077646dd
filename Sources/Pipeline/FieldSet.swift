/// The bytes of a cell of type `fieldSet`, a bit for each slot.
extension UnsafeBufferPointer<UInt8> {
  /// Whether the set has a slot. A set that the decoder made ends before the slots that stages have added.
  @inlinable
  @inline(__always)
  public func hasField(inSlot slot: Int) -> Bool {
    slot >> 3 < self.count && self[slot >> 3] & 1 << UInt8(slot & 7) != 0
  }
}
