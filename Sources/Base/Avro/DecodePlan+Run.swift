internal import Bytes
internal import JSON

extension DecodePlan {
  /// Decodes one payload.
  ///
  /// - Parameters:
  ///   - payload: one value in binary encoding, without container or marker.
  ///   - visitor: called in the order of the payload; values from before an error are invalid.
  ///   - scratch: reused from payload to payload; nothing is allocated once it has grown.
  /// - Throws: code `truncated`, `malformed`, `limitExceeded` or `trailing`, with field path and
  ///   byte offset.
  @inlinable
  public func decode<Visitor: FieldVisitor>(
    _ payload: UnsafeBufferPointer<UInt8>, into visitor: inout Visitor, scratch: DecodeScratch
  ) throws(AvroError) {
    guard payload.count <= self.limits.byteCount else { throw self.tooLarge(payload.count) }
    scratch.itemBudget = self.limits.items
    scratch.textBudget = self.limits.jsonByteCount
    // An empty payload may have no address. Any other will do, because nothing is read.
    let start =
      payload.baseAddress ?? UnsafeRawPointer(self.steps).assumingMemoryBound(to: UInt8.self)
    let cursor = AvroCursor(payload, start: start)
    let next = try self.run(0, from: start, cursor, &visitor, scratch)
    guard next == cursor.end else {
      throw self.trailing(cursor, at: next)
    }
  }

  @usableFromInline @inline(never)
  func trailing(_ cursor: AvroCursor, at next: UnsafePointer<UInt8>) -> AvroError {
    cursor.error(
      .trailing,
      "\(cursor.end - next) bytes after the end: the payload was written with "
        + "another schema", at: next)
  }

  @usableFromInline @inline(never)
  func tooLarge(_ count: Int) -> AvroError {
    AvroError(
      .limitExceeded, "a payload of \(count) bytes; the limit is \(self.limits.byteCount)",
      byteOffset: 0)
  }

  /// Executes one program and returns where its bytes end. Calls itself only for flattened records,
  /// so `Options.flattenDepth` bounds the stack.
  @inlinable
  func run<Visitor: FieldVisitor>(
    _ program: Int, from first: UnsafePointer<UInt8>, _ cursor: AvroCursor,
    _ visitor: inout Visitor, _ scratch: DecodeScratch
  ) throws(AvroError) -> UnsafePointer<UInt8> {
    var next = first
    var index = Int(self.bounds[program])
    let end = Int(self.bounds[program + 1])
    do throws(AvroError) {
      while index < end {
        var step = self.steps[index]
        if step.nullRun > 0, next < cursor.end, next[0] == 0 {
          let count = cursor.zeroes(next, limit: Int(step.nullRun))
          next += count
          index += count
          continue
        }
        if step.nullBranch != .none {
          let branch = try cursor.index(&next, below: 2)
          if (branch == 0) == (step.nullBranch == .first) {
            index += 1
            continue
          }
        } else if step.operation == .union {
          let branches = Int(self.bounds[Int(step.argument)])
          let count = Int(self.bounds[Int(step.argument) + 1]) - branches
          step = self.steps[branches + (try cursor.index(&next, below: count))]
        }
        let slot = Int(step.slot)
        switch step.operation {
        case .string:
          let bytes = try cursor.string(&next)
          visitor.bytes(slot, offset: next - cursor.start - bytes.count, count: bytes.count)
        case .double:
          visitor.scalar(slot, try cursor.double(&next))
        case .long:
          visitor.scalar(slot, UInt64(bitPattern: try cursor.long(&next)))
        case .boolean:
          visitor.scalar(slot, try cursor.boolean(&next))
        case .int:
          visitor.scalar(slot, UInt64(bitPattern: try cursor.int(&next)))
        case .float:
          visitor.scalar(slot, try cursor.float(&next))
        case .enumeration:
          visitor.scalar(slot, UInt64(try cursor.index(&next, below: Int(step.argument))))
        case .record:
          visitor.record(slot)
          next = try self.run(Int(step.argument), from: next, cursor, &visitor, scratch)
        case .list:
          next = try self.runList(slot, from: next, cursor, &visitor, scratch)
        case .bytes:
          let bytes = try cursor.bytes(&next)
          visitor.bytes(slot, offset: next - cursor.start - bytes.count, count: bytes.count)
        case .fixed:
          let place = try cursor.take(Int(step.argument), &next)
          visitor.bytes(slot, offset: place - cursor.start, count: Int(step.argument))
        case .decimalBytes:
          let bytes = try cursor.decimal(try cursor.bytes(&next), maxBytes: Int(step.argument))
          visitor.bytes(slot, offset: cursor.offset(of: bytes), count: bytes.count)
        case .decimalFixed:
          let place = try cursor.take(Int(step.size), &next)
          let bytes = try cursor.decimal(
            UnsafeBufferPointer(start: place, count: Int(step.size)),
            maxBytes: Int(step.argument))
          visitor.bytes(slot, offset: cursor.offset(of: bytes), count: bytes.count)
        case .uuidString:
          let bytes = try cursor.uuid(&next)
          visitor.bytes(slot, offset: cursor.offset(of: bytes), count: bytes.count)
        case .uuidFixed:
          let place = try cursor.take(16, &next)
          visitor.text(slot, try self.formatUUID(place, cursor, scratch))
        case .bigDecimal:
          visitor.text(slot, try self.formatBigDecimal(try cursor.bytes(&next), cursor, scratch))
        case .json:
          next = try self.transcode(Int(step.argument), from: next, cursor, scratch)
          visitor.text(slot, self.transcoded(scratch))
          for number in scratch.nonfinite {
            visitor.nonfinite(slot, offset: number.offset, number.value)
          }
        case .nothing, .union:
          break  // A union's branch is never a union.
        }
        index += 1
      }
    } catch {
      throw self.locate(error, at: index)
    }
    return next
  }

  @inlinable
  func runList<Visitor: FieldVisitor>(
    _ slot: Int, from first: UnsafePointer<UInt8>, _ cursor: AvroCursor,
    _ visitor: inout Visitor, _ scratch: DecodeScratch
  ) throws(AvroError) -> UnsafePointer<UInt8> {
    var next = first
    while true {
      // Most lists are empty or have one block.
      if next < cursor.end, next[0] == 0 { return next + 1 }
      let count = try cursor.blockCount(&next)
      if count == 0 { return next }
      try cursor.spend(count, of: scratch, at: next)
      for _ in 0..<count {
        let bytes = try cursor.string(&next)
        visitor.item(slot, offset: next - cursor.start - bytes.count, count: bytes.count)
      }
    }
  }

  /// Writes a value as JSON text into the scratch memory.
  @usableFromInline @inline(never)
  func transcode(
    _ type: Int, from first: UnsafePointer<UInt8>, _ cursor: AvroCursor, _ scratch: DecodeScratch
  ) throws(AvroError) -> UnsafePointer<UInt8> {
    scratch.text.removeAll()
    if !scratch.nonfinite.isEmpty { scratch.nonfinite.removeAll(keepingCapacity: true) }
    var next = first
    try self.transcoder.write(
      type, &next, cursor, scratch, depth: 1, interpretation: nil, limits: self.limits)
    try cursor.spendText(of: scratch, at: next)
    return next
  }

  /// What `transcode` wrote; valid until the next call.
  @usableFromInline
  func transcoded(_ scratch: DecodeScratch) -> UnsafeBufferPointer<UInt8> { scratch.text.bytes }

  @usableFromInline @inline(never)
  func formatBigDecimal(
    _ bytes: UnsafeBufferPointer<UInt8>, _ cursor: AvroCursor, _ scratch: DecodeScratch
  ) throws(AvroError) -> UnsafeBufferPointer<UInt8> {
    scratch.text.removeAll()
    try cursor.writeBigDecimal(bytes, to: &scratch.text)
    try cursor.spendText(of: scratch, at: bytes.baseAddress ?? cursor.start)
    return scratch.text.bytes
  }

  @usableFromInline @inline(never)
  func formatUUID(
    _ bytes: UnsafePointer<UInt8>, _ cursor: AvroCursor, _ scratch: DecodeScratch
  ) throws(AvroError) -> UnsafeBufferPointer<UInt8> {
    scratch.text.removeAll()
    scratch.text.appendUUID(bytes)
    try cursor.spendText(of: scratch, at: bytes)
    return scratch.text.bytes
  }
}
