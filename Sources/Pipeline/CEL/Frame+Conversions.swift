internal import Bytes

extension Frame {
  func conversion(_ node: Instruction, _ operand: Value) -> Value {
    guard self.spend(comparing: operand.byteCount) else { return self.failure(.tooExpensive, node) }
    return switch node.operation {
    case .toInt: self.int(node, operand)
    case .toUint: self.uint(node, operand)
    case .toDouble: self.double(node, operand)
    case .toString: self.string(node, operand)
    case .toBytes: self.bytes(node, operand)
    case .toBool: self.bool(node, operand)
    case .toTimestamp: self.timestamp(node, operand)
    default: self.duration(node, operand)
    }
  }

  private func int(_ node: Instruction, _ operand: Value) -> Value {
    switch operand {
    case .int: return operand
    case .uint(let value):
      return Int64(exactly: value).map { .int($0) } ?? self.failure(.outOfRange, node)
    case .double(let value):
      // Both ends of the range are left out: the double of the largest int is beyond it, and the
      // smallest may stand for something smaller.
      guard value > -0x1p63, value < 0x1p63 else { return self.failure(.outOfRange, node) }
      return .int(Int64(value))
    case .timestamp(let time): return .int(time.seconds)
    case .string(let text):
      guard text.isInteger(signs: "+-"), let value = Int64(text.text) else {
        return self.failure(.invalidText, node)
      }
      return .int(value)
    default: return self.failure(.noOverload, node)
    }
  }

  private func uint(_ node: Instruction, _ operand: Value) -> Value {
    switch operand {
    case .uint: return operand
    case .int(let value):
      return UInt64(exactly: value).map { .uint($0) } ?? self.failure(.outOfRange, node)
    case .double(let value):
      guard value >= 0, value < 0x1p64 else { return self.failure(.outOfRange, node) }
      return .uint(UInt64(value))
    case .string(let text):
      guard text.isInteger(signs: ""), let value = UInt64(text.text) else {
        return self.failure(.invalidText, node)
      }
      return .uint(value)
    default: return self.failure(.noOverload, node)
    }
  }

  private func double(_ node: Instruction, _ operand: Value) -> Value {
    switch operand {
    case .double: return operand
    case .int(let value): return .double(Double(value))
    case .uint(let value): return .double(Double(value))
    case .string(let text):
      return Self.double(text).map { .double($0) } ?? self.failure(.invalidText, node)
    case .decimal(let value):
      var buffer = ByteBuffer(capacity: 64)
      buffer.appendDecimal(unscaled: value.unscaled.bytes, scale: Int(value.scale))
      return Self.double(BorrowedBytes(buffer.bytes)).map { .double($0) }
        ?? self.failure(.outOfRange, node)
    default: return self.failure(.noOverload, node)
    }
  }

  /// Decimal notation, or a name of NaN or infinity; what is too large is infinite.
  private static func double(_ text: BorrowedBytes) -> Double? {
    guard text.count <= 1024 else { return nil }
    let allowed: Set<UInt8> = Set("0123456789+-.eE".utf8)
    if text.bytes.allSatisfy(allowed.contains) { return Double(text.text) }
    switch text.text.lowercased() {
    case "nan": return .nan
    case "inf", "+inf", "infinity", "+infinity": return .infinity
    case "-inf", "-infinity": return -.infinity
    default: return nil
    }
  }

  private func string(_ node: Instruction, _ operand: Value) -> Value {
    if case .string = operand { return operand }
    if case .bytes(let bytes) = operand {
      guard self.spend(comparing: bytes.count) else { return self.failure(.tooExpensive, node) }
      guard String(validating: bytes.bytes, as: UTF8.self) != nil else {
        return self.failure(.invalidUTF8, node)
      }
      return .string(bytes)
    }
    var buffer = ByteBuffer(capacity: 64)
    switch operand {
    case .bool(let value): buffer.append(utf8: value ? "true" : "false")
    case .int(let value): buffer.append(value)
    case .uint(let value): buffer.append(value)
    case .double(let value) where value.isFinite:
      buffer.append(value)
      // Whole numbers without ".0".
      if buffer.bytes.suffix(2).elementsEqual(".0".utf8) { buffer.truncate(to: buffer.count - 2) }
    case .double(let value): buffer.append(utf8: value.isNaN ? "NaN" : value > 0 ? "+Inf" : "-Inf")
    case .decimal(let value):
      buffer.appendDecimal(unscaled: value.unscaled.bytes, scale: Int(value.scale))
    case .timestamp(let time): time.append(to: &buffer)
    case .duration(let duration): DurationText.append(duration, to: &buffer)
    default: return self.failure(.noOverload, node)
    }
    guard self.spend(making: buffer.count) else { return self.failure(.tooExpensive, node) }
    return .string(self.arena.store(buffer.bytes))
  }

  private func bytes(_ node: Instruction, _ operand: Value) -> Value {
    switch operand {
    case .bytes: operand
    case .string(let text): .bytes(text)
    default: self.failure(.noOverload, node)
    }
  }

  private func bool(_ node: Instruction, _ operand: Value) -> Value {
    switch operand {
    case .bool: return operand
    case .string(let text):
      switch text.count <= 5 ? text.text : "" {
      case "1", "t", "T", "true", "TRUE", "True": return .bool(true)
      case "0", "f", "F", "false", "FALSE", "False": return .bool(false)
      default: return self.failure(.invalidText, node)
      }
    default: return self.failure(.noOverload, node)
    }
  }

  private func timestamp(_ node: Instruction, _ operand: Value) -> Value {
    switch operand {
    case .timestamp: operand
    case .int(let seconds):
      Timestamp(seconds: seconds).map { .timestamp($0) } ?? self.failure(.outOfRange, node)
    case .string(let text):
      Timestamp(text: text.bytes).map { .timestamp($0) } ?? self.failure(.invalidText, node)
    default: self.failure(.noOverload, node)
    }
  }

  private func duration(_ node: Instruction, _ operand: Value) -> Value {
    switch operand {
    case .duration: operand
    case .string(let text):
      DurationText.parse(text.bytes).map { .duration($0) } ?? self.failure(.invalidText, node)
    default: self.failure(.noOverload, node)
    }
  }
}

extension BorrowedBytes {
  /// Digits with at most one of the signs before them, and few enough for 64 bits.
  fileprivate func isInteger(signs: String) -> Bool {
    guard self.count > 0, self.count <= 64, let first = self.bytes.first else { return false }
    let digits = signs.utf8.contains(first) ? self.bytes.dropFirst() : self.bytes[...]
    return !digits.isEmpty && digits.allSatisfy(\.isDigit)
  }
}
