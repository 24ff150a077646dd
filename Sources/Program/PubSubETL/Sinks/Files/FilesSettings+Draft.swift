import JSON

extension FilesSettings: DraftedSink {
  static func draft(pipeline: String) -> [JSONMember] {
    [JSONMember("directory", .string("out/\(pipeline)"))]
  }

  /// Any path, with the state in a directory of its own, because files of the output belong to the
  /// pipeline.
  static func draft(destination: String) throws(DestinationMistake) -> SinkDraft? {
    guard !destination.contains("://") else { return nil }
    // Nearly a URL or a connection string, which may have a password.
    let isDatabase =
      ["postgres:", "postgresql:"].contains(where: destination.hasPrefix)
      || destination.lowercased().contains("password=")
    guard !destination.isEmpty, destination != "-", !isDatabase else {
      throw DestinationMistake(description: "expected a directory or postgresql://…")
    }
    if let mistake = FilePath.mistake(in: destination) {
      throw DestinationMistake(description: mistake)
    }
    let directory = FilePath.resolve(destination, base: FilePath.workingDirectory)
    guard directory != "/" else {
      throw DestinationMistake(description: "expected a directory below '/'")
    }
    return SinkDraft(
      members: [JSONMember("directory", .string(Interpolation.literal(directory)))],
      stateDirectory: "\(directory).state")
  }
}
