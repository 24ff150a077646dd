/// Receives the values of one payload as a `DecodePlan` decodes them, in the order of the payload.
///
/// Slots without a call are null. Implemented by structs and called through generic specialization,
/// so no call may cost more than a store.
public protocol FieldVisitor {
  /// A boolean (0 or 1), int or long (sign-extended), index of an enum, or the bit pattern of a
  /// float (low 32 bits) or double.
  mutating func scalar(_ slot: Int, _ bits: UInt64)
  /// A string (valid UTF-8), bytes or fixed, as in the payload.
  mutating func bytes(_ slot: Int, offset: Int, count: Int)
  /// A flattened record that is present. Its fields follow.
  mutating func record(_ slot: Int)
  /// One item, valid UTF-8, of an array of strings that the plan delivers item by item. An empty
  /// array makes no call.
  mutating func item(_ slot: Int, offset: Int, count: Int)
  /// Text created from the payload: JSON, a big-decimal, or a UUID that is encoded as 16 bytes.
  /// Valid during the call.
  mutating func text(_ slot: Int, _ utf8: UnsafeBufferPointer<UInt8>)
  /// A number that JSON cannot express, for which the JSON text just passed to `text` has `null`.
  ///
  /// Called after `text`, in the order of the text.
  ///
  /// - Parameters:
  ///   - offset: the offset of that `null` in the text.
  ///   - value: NaN or an infinity.
  mutating func nonfinite(_ slot: Int, offset: Int, _ value: Float)
}

extension FieldVisitor {
  /// Does nothing, so the text just has `null`.
  public mutating func nonfinite(_ slot: Int, offset: Int, _ value: Float) {}
}
