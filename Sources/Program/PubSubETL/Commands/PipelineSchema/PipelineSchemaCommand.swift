import ArgumentParser

/// `pubsub-etl pipeline-schema > pipelines/pipeline.schema.json`: the schema that editors use, for
/// those who change the program.
struct PipelineSchemaCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "pipeline-schema",
    abstract: "Prints the JSON Schema of pipeline files, for editors.",
    discussion: """
      EXAMPLES:
        pubsub-etl pipeline-schema > pipeline.schema.json
      """)

  @Flag(help: "Print the page PipelineReference.md instead.")
  var reference = false

  func run() throws {
    let text =
      self.reference
      ? PrintableText(lines: PipelineReference.text, hiding: SecretMask())
      : PrintableText(json: PipelineSchema.document, hiding: SecretMask())
    try StandardStream.print(text)
  }
}
