import Avro
import JSON
import Pipeline

/// Input: a byte that chooses one of `eventSchemas` and a payload; or, when the byte chooses none, the
/// JSON text of a schema, a zero byte and a payload. Compiled together with the decoder.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzEvent(_ data: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let input = Array(UnsafeBufferPointer(start: data, count: count))
  guard let first = input.first else { return 0 }
  if Int(first) < eventSchemas.count {
    check(Array(input.dropFirst()), schema: eventSchemas[Int(first)])
  } else if let end = input.firstIndex(of: 0) {
    check(Array(input[(end + 1)...]), schema: String(decoding: input[..<end], as: UTF8.self))
  }
  return 0
}

/// Whatever schema and payload are: rows that can be read, or an error and no trace of the event.
private func check(_ payload: [UInt8], schema: String) {
  for topic in ["/data/ChangeEvents", "/event/E__e"] {
    for recordIDs in [EventDecodingOptions.RecordIDs.rows, .array] {
      var options = EventDecodingOptions(
        recordIDs: recordIDs, maxRecordsPerEvent: 100,
        limits: DecodeLimits(byteCount: 1 << 16, depth: 32, items: 5_000, jsonByteCount: 1 << 18))
      options.maxRowByteCount = 1 << 20
      guard
        let decoder = try? AvroEventDecoder(
          json: schema, schemaID: "s", topic: topic, options: options)
      else { continue }
      let batch = RecordBatch(layout: decoder.layout)
      // The second time there is something in the batch, which an error must leave alone.
      for _ in 0..<2 { decode(payload, with: decoder, into: batch) }
    }
  }
}

private func decode(_ payload: [UInt8], with decoder: AvroEventDecoder, into batch: RecordBatch) {
  let before = (batch.rowCount, batch.arenaCount, batch.events.count)
  let ids: [UInt8] = [1, 2, 3]
  do {
    let rows = try ids.withUnsafeBufferPointer { ids in
      try payload.withUnsafeBufferPointer {
        try decoder.decode(eventID: ids, replayID: ids, payload: $0, into: batch)
      }
    }
    require(rows > 0 && batch.rowCount == before.0 + rows, "\(rows) rows")
    require(batch.events.count == before.2 + 1, "an event")
    for row in before.0..<batch.rowCount { check(batch.layout.columns, row: row, of: batch) }
    let event = batch.events[before.2]
    require(event.firstRow == before.0 && event.rowCount == rows, "rows of the event")
    if let time = event.commitTimestamp { require(CommitTime.range.contains(time), "\(time)") }
  } catch {
    require(
      (batch.rowCount, batch.arenaCount, batch.events.count) == before, "an error leaves a trace")
  }
}

private func check(_ columns: [Column], row: Int, of batch: RecordBatch) {
  for column in columns {
    switch column.content {
    case .constant: break
    case .slot(let slot, let type): check(slot, type, column.name, row: row, of: batch)
    case .record(let slot, let scalar, let children):
      require(batch.row(row).presence[slot] <= 2, "presence of \(column.name)")
      if let scalar { check(scalar.slot, scalar.type, column.name, row: row, of: batch) }
      check(children, row: row, of: batch)
    }
  }
}

private func check(
  _ slot: Int, _ type: ColumnType, _ name: String, row: Int, of batch: RecordBatch
) {
  require(slot < batch.layout.slotCount, "slot of \(name)")
  let presence = batch.row(row).presence[slot]
  require(presence <= 2, "presence of \(name)")
  guard presence == RecordBatch.Presence.value else { return }
  let cell = batch.row(row).cells[slot]
  func bytes() -> UnsafeBufferPointer<UInt8> {
    let range = RecordBatch.Range(cell: cell)
    require(range.offset + range.count <= batch.arenaCount, "range of \(name)")
    return batch.bytes(range)
  }
  switch type {
  case .boolean: require(cell <= 1, "boolean \(name)")
  case .enumeration(let symbols): require(cell < UInt64(symbols.count), "symbol of \(name)")
  case .string, .json, .stringList, .uuid:
    // The replay ID is text of the payload's own making; all texts are UTF-8.
    require(String(validating: bytes(), as: UTF8.self) != nil, "\(name) is not UTF-8")
  case .bytes, .decimal: _ = bytes()
  case .duration: require(bytes().count == 12, "duration \(name)")
  case .fieldSet:
    require(bytes().count == (batch.layout.slotCount + 7) / 8, "bits of \(name)")
  default: break
  }
}

private let changeType =
  #"{"type":"enum","name":"ChangeType","symbols":["CREATE","UPDATE","DELETE","UNDELETE","GAP_CREATE"]}"#
private let strings = #"{"type":"array","items":"string"}"#

private func header(_ fields: [(String, String)]) -> String {
  let list = fields.map { #"{"name":"\#($0.0)","type":\#($0.1)}"# }.joined(separator: ",")
  return #"{"name":"ChangeEventHeader","type":{"type":"record","name":"H","fields":[\#(list)]}}"#
}

private let usualHeader = header([
  ("entityName", #""string""#), ("recordIds", strings), ("changeType", changeType),
  ("changeOrigin", #""string""#), ("transactionKey", #""string""#), ("sequenceNumber", #""int""#),
  ("commitTimestamp", #""long""#), ("commitNumber", #""long""#), ("commitUser", #""string""#),
  ("nulledFields", strings), ("diffFields", strings), ("changedFields", strings),
])

private let body = """
  {"name":"N","type":["null","string",{"type":"record","name":"P","fields":[\
  {"name":"First","type":["null","string"]},{"name":"Last","type":["null","string"]}]}]},\
  {"name":"A","type":["null",{"type":"record","name":"Q","fields":[{"name":"Lat","type":"double"}]}]},\
  {"name":"L","type":["null","long"],"doc":"Data:DateTime"},\
  {"name":"J","type":["null",{"type":"map","values":"P"}]}
  """

/// New ones go to the end: the corpus counts from 0.
private let eventSchemas = [
  #"{"type":"record","name":"AChangeEvent","fields":[\#(usualHeader),\#(body)]}"#,
  // Another order, another enum first, nullable fields, more of them.
  """
  {"type":"record","name":"AChangeEvent","fields":[\(header([
    ("mode", #"{"type":"enum","name":"M","symbols":["X"]}"#), ("changedFields", strings),
    ("changeType", #"["null",\#(changeType)]"#), ("recordIds", #"["null",\#(strings)]"#),
    ("tags", strings), ("commitTimestamp", #"["long","null"]"#), ("nulledFields", strings),
  ])),\(body)]}
  """,
  // The change type as text, a header of records.
  """
  {"type":"record","name":"AChangeEvent","fields":[\(header([
    ("who", #"{"type":"record","name":"W","fields":[{"name":"id","type":"string"}]}"#),
    ("recordIds", strings), ("changeType", #""string""#), ("commitNumber", #""int""#),
  ])),\(body)]}
  """,
  // A platform event with a field of the header's name.
  """
  {"type":"record","name":"E__e","fields":[{"name":"CreatedDate","type":"long"},\
  {"name":"ChangeEventHeader","type":["null","string"]}]}
  """,
]
