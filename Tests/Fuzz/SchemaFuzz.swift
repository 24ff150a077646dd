import Avro

/// Input: the JSON text of a schema.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzSchema(_ data: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let text = Array(UnsafeBufferPointer(start: data, count: count))
  let schema: Schema
  do throws(AvroError) {
    schema = try Schema(parsing: text, limits: SchemaLimits(depth: 24, elements: 2_000))
  } catch {
    require(error.byteOffset == nil, "a byte offset in a schema")
    require(error.code == .schema || error.code == .limitExceeded, "\(error)")
    // What a log line may take; pointers into the text are as long as its names.
    require(error.message.utf8.count < 1_200, "a message of \(error.message.utf8.count) bytes")
    return 0
  }
  checkCanonicalForm(of: schema)
  let options = DecodePlan.Options(maxSlots: 2_000)
  var flat = options
  flat.flattenDepth = 0
  if let plan = try? DecodePlan(schema, options: options, limits: fuzzLimits),
    let nested = try? DecodePlan(schema, options: flat, limits: fuzzLimits)
  {
    for payload in [[], [UInt8](repeating: 0, count: 64), [UInt8](repeating: 2, count: 64)] {
      check(payload, schema, plan, nested: nested)
    }
  }
  return 0
}

/// A canonical form is its own, unless names without namespace stand among others: there is no
/// spelling for them within a record that has a namespace, and the specification's form gives them
/// the record's.
private func checkCanonicalForm(of schema: Schema) {
  let form = schema.canonicalForm
  var namespaces: Set<String> = []
  collectNamespaces(schema, schema.root, &namespaces)
  if namespaces.contains(""), namespaces.count > 1 { return }
  do throws(AvroError) {
    let again = try Schema(parsing: Array(form.utf8))
    require(again.canonicalForm == form, "\(form) is not canonical")
    require(again.fingerprint == schema.fingerprint, "another fingerprint")
  } catch {
    fatalError("\(form): \(error)")
  }
}

private func collectNamespaces(
  _ schema: Schema, _ root: Schema.TypeID, _ namespaces: inout Set<String>
) {
  var seen: Set<Schema.TypeID> = [root]
  var waiting = [root]
  while let type = waiting.popLast() {
    let definition = schema[type]
    if let name = definition.name { namespaces.insert(name.namespace) }
    let inner: [Schema.TypeID] =
      switch definition.kind {
      case .record(let fields): fields.map(\.type)
      case .array(let items): [items]
      case .map(let values): [values]
      case .union(let branches): branches
      default: []
      }
    waiting += inner.filter { seen.insert($0).inserted }
  }
}
