import FileSink
import JSON

extension FilesSettings {
  static let schemaDescription = "Writes zstd-compressed NDJSON files."

  static var schemaMembers: [JSONSchema.Member] {
    let defaults = Self(directory: "")
    return [
      .required(
        "directory", .reference("path"),
        "Holds a folder for each object; relative to this file."),
      .optional(
        "mode", .text(pattern: #"^(0?[0-7]{3}|\$\{.*\})$"#),
        "Mode of the files in octal digits; directories can be searched by those who can read "
          + "them. Set exactly, whatever the umask. Without mode and group, files are created "
          + "with 0640 and directories with 0750, minus the umask."),
      .optional(
        "group", .text(),
        "Group of new files and directories, a name or a number. The user who runs the program "
          + "must be a member. By default, the system decides."),
      .optional(
        "when_missing", .choice(of: FileSinkConfiguration.MissingPolicy.self),
        "What it means if finished files are missing. fail: the run ends with 65 if "
          + "_manifest.ndjson is also missing, or if older files of the entity still exist. "
          + "A loader that deletes what it has read begins with the oldest, so such files were "
          + "lost. ignore: a loader removes files, in any order.",
        default: .string(defaults.whenMissing.rawValue)),
      .optional(
        "int64", .choice(of: Int64Form.self),
        "string: long columns as text, for readers whose numbers are doubles. Numbers inside "
          + "arrays, maps and JSON columns stay numbers.",
        default: .string(defaults.int64.rawValue)),
      .optional(
        "compression",
        .object([
          .optional("type", .constant("zstd"), "The only method.", default: "zstd"),
          .optional(
            "level", .oneOf([.integer(from: 1, through: 19), .reference("variable")]),
            "Higher levels make smaller files and take longer.",
            default: .integer(defaults.compressionLevel)),
        ]), "Each file is one zstd frame."),
      .optional(
        "rotate",
        .object([
          .optional(
            "max_bytes", .reference("byteCount"), "Bytes of the file, compressed.",
            default: PipelineSchema.byteCount(defaults.rotateBytes)),
          .optional(
            "max_events", .reference("integer"), "Events in the file.",
            default: .integer(defaults.rotateEvents)),
          .optional(
            "max_age", .reference("duration"), "Time since the file was started.",
            default: PipelineSchema.duration(defaults.rotateAge)),
          .optional(
            "max_idle", .reference("duration"), "Time since the file's last event.",
            default: PipelineSchema.duration(defaults.rotateIdle)),
        ]), "When a file is finished and the next one is started."),
    ]
  }
}
