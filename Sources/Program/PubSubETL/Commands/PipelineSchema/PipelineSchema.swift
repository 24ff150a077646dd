import JSON
import Pipeline

/// The JSON Schema of pipeline files (`pipelines/pipeline.schema.json`), from the declarations of their
/// keys.
enum PipelineSchema {
  static var document: JSONValue {
    var members: [JSONMember] = [
      JSONMember("$schema", "http://json-schema.org/draft-07/schema#"),
      JSONMember("title", "Pipeline of pubsub-etl"),
    ]
    members += JSONSchema.object(PipelineConfiguration.declarations).value.members ?? []
    let definitions =
      JSONSchema.valueDefinitions + Self.definitions + TransformRegistry.schemaDefinitions
      + SinkRegistry.schemaDefinitions
    members.append(
      JSONMember(
        "definitions",
        JSONValue(.object(definitions.map { JSONMember($0.name, $0.schema.value) }))))
    return JSONValue(.object(members))
  }

  /// The document as its file holds it.
  static var text: String { Self.document.text(.pretty) + "\n" }

  /// Kinds of values that occur in several places, and the org, which can have a file of its own.
  /// Texts may hold variables.
  private static var definitions: [(name: String, schema: JSONSchema)] {
    [
      (
        "identifier",
        .text(pattern: #"^([A-Za-z0-9][A-Za-z0-9._-]{0,63}|.*\$\{.*)$"#)
          .described("1 to 64 letters, digits, '-', '_' and '.'.")
      ),
      (
        "path",
        .text(minLength: 1).described("Relative paths are relative to this file.")
      ),
      (
        "topic",
        .text(
          pattern:
            #"^(/data/([A-Za-z0-9_]+ChangeEvent|ChangeEvents|[A-Za-z0-9_]*__chn)|/event/[A-Za-z0-9_]+|.*\$\{.*)$"#
        )
        .described("/data/… for changes of records, /event/… for platform events.")
      ),
      ("start", Kind.startDefinition),
      (
        "org",
        .object(OrgConfiguration.declarations).described("An org, and how to connect to it.")
      ),
    ]
  }
}
