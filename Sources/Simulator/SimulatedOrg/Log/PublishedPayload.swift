/// Reads the payload of a published platform event, as a check and for the truth file.
package struct PublishedPayload {
  private var bytes: ArraySlice<UInt8>

  /// The values, or an error that says what is wrong.
  package static func image(
    _ payload: [UInt8], model: EntityModel, schema: EventSchema
  ) throws -> EventImage {
    var reader = PublishedPayload(bytes: payload[...])
    var image = EventImage(entity: model, schema: schema)
    image.reset(entity: model, schema: schema)
    for step in schema.steps {
      switch step {
      case .required(let slot, let type):
        image.cells[slot] = try reader.value(type, &image)
      case .nullable(let slot, let type):
        switch try reader.long() {
        case 0: break
        case 1: image.cells[slot] = try reader.value(type, &image)
        default: throw Self.malformed("a union has no such branch")
        }
      case .compound, .switchableName:
        preconditionFailure("platform events have no compound fields")
      }
    }
    guard reader.bytes.isEmpty else { throw Self.malformed("bytes are left at the end") }
    return image
  }

  private static func malformed(_ what: String) -> SimulatorError {
    SimulatorError(.configuration, "The payload is not valid for the schema: \(what).")
  }

  private mutating func long() throws -> Int64 {
    var value: UInt64 = 0
    for shift in stride(from: UInt64(0), to: 70, by: 7) {
      guard let byte = self.bytes.popFirst() else { throw Self.malformed("it ends in a number") }
      value |= UInt64(byte & 0x7f) << shift
      if byte & 0x80 == 0 { return Int64(bitPattern: value >> 1) ^ -Int64(value & 1) }
    }
    throw Self.malformed("a number has more than ten bytes")
  }

  private mutating func take(_ count: Int64) throws -> ArraySlice<UInt8> {
    guard count >= 0, count <= Int64(self.bytes.count) else {
      throw Self.malformed("it ends in a value")
    }
    defer { self.bytes = self.bytes.dropFirst(Int(count)) }
    return self.bytes.prefix(Int(count))
  }

  private mutating func value(_ type: ScalarType, _ image: inout EventImage) throws -> Cell {
    switch type {
    case .long: return .long(try self.long())
    case .int:
      guard let value = Int32(exactly: try self.long()) else {
        throw Self.malformed("an int is out of range")
      }
      return .int(value)
    case .boolean: return .boolean(try self.take(1).first != 0)
    case .double:
      let bits = try self.take(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      return .double(Double(bitPattern: bits))
    case .string:
      let text = try self.take(try self.long())
      guard String(validating: text, as: UTF8.self) != nil else {
        throw Self.malformed("a text is not UTF-8")
      }
      return image.text(text)
    }
  }
}
