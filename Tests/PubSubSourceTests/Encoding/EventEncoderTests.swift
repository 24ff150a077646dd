import JSON
import Pipeline
import PubSubSource
import Testing

@Suite("Payloads from JSON") struct EventEncoderTests {
  private static let list = #"{"type":"array","items":"string"}"#
  private static let schema = """
    {"type":"record","name":"Foo__ChangeEvent","fields":[
      {"name":"ChangeEventHeader","type":{"type":"record","name":"ChangeEventHeader","fields":[
        {"name":"entityName","type":"string"},{"name":"recordIds","type":\(Self.list)},
        {"name":"changeType","type":{"type":"enum","name":"ChangeType",
          "symbols":["CREATE","UPDATE","DELETE"]}},
        {"name":"nulledFields","type":\(Self.list)},{"name":"diffFields","type":\(Self.list)},
        {"name":"changedFields","type":\(Self.list)}]}},
      {"name":"Name","type":["null","string"]},{"name":"Amount","type":["null","double"]},
      {"name":"Place","type":["null",{"type":"record","name":"Address","fields":[
        {"name":"Street","type":["null","string"]},{"name":"City","type":["null","string"]}]}]}]}
    """

  /// The presence of the columns of the event's first row, and the text of the ones that list names.
  private static func row(_ json: String) throws -> [String: UInt8] {
    let mistakes = JSONMistakes()
    let encoder = try EventEncoder(json: Self.schema, topic: "/data/Foo__ChangeEvent")
    let payload = encoder.payload(try JSONValue(parsing: json), path: "", mistakes: mistakes)
    try #require(mistakes.isEmpty, "\(mistakes.all)")
    let decoder = try AvroEventDecoder(
      json: Self.schema, schemaID: encoder.schemaID, topic: "/data/Foo__ChangeEvent")
    let batch = RecordBatch(layout: decoder.layout)
    try payload.withUnsafeBufferPointer { payload in
      let none = UnsafeBufferPointer<UInt8>(start: nil, count: 0)
      _ = try decoder.decode(eventID: none, replayID: none, payload: payload, into: batch)
    }
    var presence: [String: UInt8] = [:]
    func note(_ column: Column) {
      switch column.content {
      case .slot(let slot, _): presence[column.name] = batch.row(0).presence[slot]
      case .record(_, _, let children): for child in children { note(child) }
      case .constant: break
      }
    }
    for column in decoder.layout.columns where !column.isMetadata { note(column) }
    return presence
  }

  @Test("An update changes the members that are present, and nulls those that are null")
  func update() throws {
    let row = try Self.row(
      #"""
      {"ChangeEventHeader": {"changeType": "UPDATE", "recordIds": ["a01000000000001AAA"]},
       "Amount": null, "Place": {"City": "Rome", "Street": null}}
      """#)
    #expect(row == ["Name": 0, "Amount": 1, "Street": 1, "City": 2])
  }

  @Test("A create names no fields, and missing members are absent")
  func create() throws {
    let row = try Self.row(
      #"""
      {"ChangeEventHeader": {"changeType": "CREATE", "recordIds": ["a01000000000001AAA"]},
       "Name": "x", "Amount": null}
      """#)
    #expect(row == ["Name": 2, "Amount": 0, "Street": 0, "City": 0])
  }

  @Test("Lists in the header may contain field names or bitmaps")
  func lists() throws {
    let row = try Self.row(
      #"""
      {"ChangeEventHeader": {"changeType": "UPDATE", "recordIds": ["a01000000000001AAA"],
        "changedFields": ["0x04", "Name", "Place.City"], "nulledFields": ["Place.City"]}}
      """#)
    #expect(row == ["Name": 1, "Amount": 1, "Street": 0, "City": 1])
  }

  @Test("An unknown name in a list of fields is an error with its place")
  func unknownName() throws {
    let mistakes = JSONMistakes()
    let encoder = try EventEncoder(json: Self.schema, topic: "/data/Foo__ChangeEvent")
    let json = """
      {"ChangeEventHeader": {"changeType": "UPDATE", "recordIds": [], "changedFields": ["Nam"]}}
      """
    _ = encoder.payload(try JSONValue(parsing: json), path: "/p", mistakes: mistakes)
    #expect(
      mistakes.all.map(\.description) == [
        "/p/ChangeEventHeader/changedFields/0: 'Nam' is neither a field of the schema nor a bitmap; known: Name, Amount, Place"
      ])
  }
}
