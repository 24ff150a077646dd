package import JSON

extension TransformRegistry {
  /// Definitions for the schema of pipeline files, by name; `stage` accepts any stage.
  package static var schemaDefinitions: [(name: String, schema: JSONSchema)] {
    let stages = self.types.map { type in
      (
        name: "\(type.type)Stage",
        schema: JSONSchema.object(type.declarations).described(type.schemaDescription)
      )
    }
    let any = JSONSchema.oneOf(stages.map { .reference($0.name) })
      .described("Changes what leaves the stage before it.")
    return [("stage", any)] + stages + ColumnNames.schemaDefinitions
      + [ClassificationSelector.schemaDefinition] + SetColumns.schemaDefinitions
      + CastTarget.schemaDefinitions + Route.schemaDefinitions
  }
}

extension ColumnNames {
  static var schemaDefinitions: [(name: String, schema: JSONSchema)] {
    [
      (
        "columnNames",
        .list(of: .text(), minCount: 1, isUnique: true)
          .described(
            "Column names as left by the stages before. In a name, * stands for any characters "
              + "and ? for one; such a pattern fits metadata columns only if it begins with _.")
      ),
      (
        "missing",
        .choice(of: Missing.self).described(
          "What to do about names that schemas lack. Without it a name must be in the schema of one "
            + "of the topics; with channels, whose schemas come with their events, a name that none "
            + "has had is reported when the run ends. ignore: a name may be in none. fail: the run "
            + "stops at the first schema that lacks one.")
      ),
    ]
  }
}
