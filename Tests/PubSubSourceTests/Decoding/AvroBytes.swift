/// Writes Avro binary by hand, for events whose every byte a test wants to know.
struct AvroBytes {
  private(set) var bytes: [UInt8] = []

  mutating func long(_ value: Int64) {
    var rest = UInt64(bitPattern: value << 1 ^ value >> 63)
    while rest > 0x7F {
      self.bytes.append(UInt8(rest & 0x7F | 0x80))
      rest >>= 7
    }
    self.bytes.append(UInt8(rest))
  }

  mutating func string(_ text: String) {
    self.long(Int64(text.utf8.count))
    self.bytes += text.utf8
  }

  mutating func strings(_ texts: [String]) {
    if !texts.isEmpty {
      self.long(Int64(texts.count))
      for text in texts { self.string(text) }
    }
    self.long(0)
  }

  mutating func double(_ value: Double) {
    withUnsafeBytes(of: value.bitPattern.littleEndian) { self.bytes += $0 }
  }

  mutating func raw(_ bytes: [UInt8]) { self.bytes += bytes }
  /// Index of a union's branch.
  mutating func branch(_ index: Int64) { self.long(index) }
  mutating func null() { self.long(0) }
}

/// A change event header with everything in it.
struct TestHeader {
  /// Index of the schema's symbols: 0 CREATE, 1 UPDATE, 2 DELETE, 3 UNDELETE, 4… GAP_CREATE and
  /// on, 8 GAP_OVERFLOW, 9 SNAPSHOT.
  var changeType: Int64 = 1
  var recordIDs = ["006000000000001AAA"]
  var nulled: [String] = []
  var diff: [String] = []
  var changed: [String] = []
  var commitNumber: Int64 = 1_709_303_151_782_928_388

  func write(to out: inout AvroBytes) {
    out.string("Account")
    out.strings(self.recordIDs)
    out.long(self.changeType)
    out.string("com/salesforce/api/soap/60.0;client=x")
    out.string("00000b6c-1111-2222-3333-444455556666")
    out.long(1)
    out.long(1_771_300_995_000)
    out.long(self.commitNumber)
    out.string("005000000000001AAA")
    out.strings(self.nulled)
    out.strings(self.diff)
    out.strings(self.changed)
  }

  static let schema = """
    {"name":"ChangeEventHeader","type":{"type":"record","name":"ChangeEventHeader","fields":[\
    {"name":"entityName","type":"string"},\
    {"name":"recordIds","type":{"type":"array","items":"string"}},\
    {"name":"changeType","type":{"type":"enum","name":"ChangeType","symbols":["CREATE","UPDATE",\
    "DELETE","UNDELETE","GAP_CREATE","GAP_UPDATE","GAP_DELETE","GAP_UNDELETE","GAP_OVERFLOW",\
    "SNAPSHOT"]}},\
    {"name":"changeOrigin","type":"string"},{"name":"transactionKey","type":"string"},\
    {"name":"sequenceNumber","type":"int"},{"name":"commitTimestamp","type":"long"},\
    {"name":"commitNumber","type":"long"},{"name":"commitUser","type":"string"},\
    {"name":"nulledFields","type":{"type":"array","items":"string"}},\
    {"name":"diffFields","type":{"type":"array","items":"string"}},\
    {"name":"changedFields","type":{"type":"array","items":"string"}}]},\
    "doc":"Data:ComplexValueType"}
    """
}
