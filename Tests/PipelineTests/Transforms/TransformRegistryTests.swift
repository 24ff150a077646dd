import JSON
import Pipeline
import Testing

@Suite("Stages from a pipeline file")
struct TransformRegistryTests {
  /// Names of a layout after the stage, or the mistakes.
  private func outcome(_ text: String) throws -> String {
    let mistakes = JSONMistakes()
    let reader = JSONReader(
      try JSONValue(parsing: text), path: "/stages/0", mistakes: mistakes)
    let stage = TransformRegistry.stage(reading: reader)?()
    guard mistakes.isEmpty else { return mistakes.all.map(\.description).joined(separator: "\n") }
    let layout = RecordLayout.of([
      Column(metadata: "_record_id", 0), Column(record: "BillingAddress", 1, children: ["City"]),
      Column("Name", 3),
    ])
    return try #require(stage).layout(for: layout).names.joined(separator: ",")
  }

  @Test(
    "Each stage type is read with its members",
    arguments: [
      (#"{"type":"flatten"}"#, "_record_id,BillingAddress_City,Name"),
      (#"{"type":"flatten","naming":"path"}"#, "_record_id,BillingAddress_City,Name"),
      (#"{"type":"flatten","naming":"sobject","//":"x"}"#, "_record_id,BillingCity,Name"),
      (#"{"type":"select","columns":["Name"]}"#, "_record_id,Name"),
      (#"{"type":"select","columns":["Name","X"],"missing":"ignore"}"#, "_record_id,Name"),
      (#"{"type":"drop","columns":["Name","_record_id"]}"#, "BillingAddress"),
      (
        #"{"type":"rename","columns":{"Name":"n","//":"comment"}}"#,
        "_record_id,BillingAddress,n"
      ),
    ])
  func accepts(text: String, names: String) throws {
    #expect(try self.outcome(text) == names)
  }

  @Test(
    "A mistake names the path and the choices",
    arguments: [
      (
        #"{"type":"flaten"}"#,
        "/stages/0/type: unknown stage 'flaten'; did you mean 'flatten'?; known: \(TransformRegistry.names.joined(separator: ", "))"
      ),
      (#"{}"#, "/stages/0/type: is required"),
      (
        #"{"type":"flatten","naming":"soql","depth":1}"#,
        """
        /stages/0/naming: unknown naming 'soql'; known: path, sobject
        /stages/0/depth: unknown key; known: type, naming
        """
      ),
      (
        #"{"type":"select","colums":["Name"]}"#,
        """
        /stages/0/columns: is required
        /stages/0/colums: unknown key; did you mean 'columns'?; known: type, columns, missing
        """
      ),
      (#"{"type":"drop","columns":[]}"#, "/stages/0/columns: does not name a column"),
      (#"{"type":"drop","columns":["a","a"]}"#, "/stages/0/columns: lists 'a' twice"),
      (
        #"{"type":"drop","columns":[1]}"#,
        "/stages/0/columns/0: expected a string, found a number"
      ),
      (#"{"type":"rename","columns":{}}"#, "/stages/0/columns: does not name a column"),
      (
        #"{"type":"rename","columns":{"a":"","b":"c","d":"c","e":1}}"#,
        """
        /stages/0/columns/a: a column needs a name; to remove it, use the stage 'drop'
        /stages/0/columns/d: 'b' is also renamed to 'c'; choose different names
        /stages/0/columns/e: expected a string, found a number
        """
      ),
    ])
  func refuses(text: String, mistakes: String) throws {
    #expect(try self.outcome(text) == mistakes)
  }
}
