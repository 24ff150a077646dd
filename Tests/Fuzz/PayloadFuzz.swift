import Avro

/// Input: a byte that chooses one of `payloadSchemas` and a payload; or, when the byte chooses
/// none, the JSON text of a schema, a zero byte and a payload.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzPayload(_ data: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let input = Array(UnsafeBufferPointer(start: data, count: count))
  guard let first = input.first else { return 0 }
  if Int(first) < knownPlans.count {
    let known = knownPlans[Int(first)]
    check(Array(input.dropFirst()), known.schema, known.plan, nested: known.nested)
  } else if let end = input.firstIndex(of: 0), let plans = Plans(Array(input[..<end])) {
    check(Array(input[(end + 1)...]), plans.schema, plans.plan, nested: plans.nested)
  }
  return 0
}

private struct Plans: Sendable {
  let schema: Schema
  let plan: DecodePlan
  let nested: DecodePlan

  /// Nil for a text that is not a schema.
  init?(_ text: [UInt8]) {
    var flat = DecodePlan.Options(maxSlots: 2_000)
    flat.flattenDepth = 0
    guard let schema = try? Schema(parsing: text, limits: SchemaLimits(depth: 24)),
      let plan = try? DecodePlan(
        schema, options: DecodePlan.Options(maxSlots: 2_000), limits: fuzzLimits),
      let nested = try? DecodePlan(schema, options: flat, limits: fuzzLimits)
    else { return nil }
    self.schema = schema
    self.plan = plan
    self.nested = nested
  }
}

private let knownPlans: [Plans] = payloadSchemas.map {
  guard let plans = Plans(Array($0.utf8)) else { fatalError("\($0) is no schema") }
  return plans
}

/// Types of every kind, alone and together. New ones go to the end: the corpus counts from 0.
private let payloadSchemas = [
  #""long""#,
  #""string""#,
  #"{"type":"array","items":"int"}"#,
  #"{"type":"map","values":["null","string"]}"#,
  #"{"type":"array","items":"null"}"#,
  #"{"type":"bytes","logicalType":"decimal","precision":30,"scale":4}"#,
  #"{"type":"bytes","logicalType":"big-decimal"}"#,
  #"{"type":"string","logicalType":"uuid"}"#,
  #"["null","boolean","int","double",{"type":"array","items":"string"},{"type":"enum","name":"E","symbols":["A","B"]}]"#,
  // Recursion in every form.
  """
  {"type":"record","name":"T","fields":[{"name":"v","type":"int"},{"name":"next","type":["null","T"]},\
  {"name":"all","type":{"type":"array","items":"T"}},{"name":"by","type":{"type":"map","values":"T"}}]}
  """,
  // All logical types.
  """
  {"type":"record","name":"L","fields":[{"name":"d","type":{"type":"int","logicalType":"date"}},\
  {"name":"tm","type":{"type":"int","logicalType":"time-millis"}},\
  {"name":"tu","type":{"type":"long","logicalType":"time-micros"}},\
  {"name":"sm","type":{"type":"long","logicalType":"timestamp-millis"}},\
  {"name":"su","type":{"type":"long","logicalType":"timestamp-micros"}},\
  {"name":"sn","type":{"type":"long","logicalType":"timestamp-nanos"}},\
  {"name":"lm","type":{"type":"long","logicalType":"local-timestamp-millis"}},\
  {"name":"ln","type":{"type":"long","logicalType":"local-timestamp-nanos"}},\
  {"name":"f","type":{"type":"fixed","name":"F","size":9,"logicalType":"decimal","precision":20}},\
  {"name":"u","type":{"type":"fixed","name":"U","size":16,"logicalType":"uuid"}},\
  {"name":"p","type":{"type":"fixed","name":"P","size":12,"logicalType":"duration"}},\
  {"name":"x","type":"float"}]}
  """,
  // The shape of a change event: nullable fields, a compound, a scalar or a record.
  """
  {"type":"record","name":"E","fields":[{"name":"H","type":{"type":"record","name":"Hd","fields":[\
  {"name":"ids","type":{"type":"array","items":"string"}},{"name":"n","type":"long"},\
  {"name":"t","type":{"type":"enum","name":"C","symbols":["CREATE","UPDATE","DELETE"]}}]}},\
  {"name":"N","type":["null","string",{"type":"record","name":"P","fields":[\
  {"name":"First","type":["null","string"]},{"name":"Last","type":["null","string"]}]}]},\
  {"name":"A","type":["null","double"]},{"name":"B","type":["boolean","null"]},\
  {"name":"C0","type":["null","long"]},{"name":"D","type":["null","P"]},\
  {"name":"Z","type":["null","string"]},{"name":"Y","type":["null","int"]},\
  {"name":"X","type":["null","bytes"]},{"name":"W","type":["null","float"]}]}
  """,
  // Arrays of maps of unions of records; empty records in arrays.
  """
  {"type":"array","items":{"type":"map","values":["null",{"type":"record","name":"R","fields":[\
  {"name":"e","type":{"type":"array","items":{"type":"record","name":"Empty","fields":[]}}},\
  {"name":"s","type":{"type":"fixed","name":"S","size":2}}]},"bytes"]}}
  """,
]
