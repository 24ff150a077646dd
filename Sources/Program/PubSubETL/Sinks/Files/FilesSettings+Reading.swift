import FileSink
import JSON

extension FilesSettings {
  init?(reading reader: JSONReader, with configuration: ConfigurationReader) {
    let name = configuration.identifier(reader, "name")
    let directory = configuration.path(reader, "directory", required: true)
    self.init(directory: directory ?? "")
    self.name = name ?? self.name
    self.int64 = reader.choice("int64", called: "form") ?? self.int64
    self.start = configuration.sinkStart(reader)
    if let compression = reader.object("compression") {
      enum Kind: String, CaseIterable { case zstd }
      _ = compression.choice("type", of: Kind.self, called: "compression")
      self.compressionLevel = compression.integer("level", in: 1...19) ?? self.compressionLevel
      compression.finish()
    }
    if let rotate = reader.object("rotate") {
      let day = Duration.seconds(86_400)
      self.rotateBytes =
        rotate.byteCount("max_bytes", in: 64 << 10...1 << 40) ?? self.rotateBytes
      self.rotateEvents = rotate.integer("max_events", in: 1 ... .max) ?? self.rotateEvents
      self.rotateAge = rotate.duration("max_age", in: .seconds(1)...day * 7) ?? self.rotateAge
      self.rotateIdle = rotate.duration("max_idle", in: .seconds(1)...day * 7) ?? self.rotateIdle
      rotate.finish()
    }
    self.whenMissing = reader.choice("when_missing", called: "policy") ?? self.whenMissing
    self.permissions = Self.permissions(reader, with: configuration)
    self.stages = configuration.stages(reader)
    if directory == nil { return nil }
  }

  /// `mode` and `group`.
  private static func permissions(
    _ reader: JSONReader, with configuration: ConfigurationReader
  ) -> FileSinkConfiguration.Permissions? {
    let mode = reader.string("mode")
    let group = configuration.text(reader, "group")
    guard mode != nil || group != nil else { return nil }
    var permissions = FileSinkConfiguration.Permissions()
    if let mode {
      if let number = Self.fileMode(mode) {
        permissions.mode = number
      } else {
        reader.report(
          "mode",
          "expected an octal mode that lets the owner read and write and makes nothing "
            + "executable: \"0640\", \"0644\", \"0660\"")
      }
    }
    if let group {
      do throws(UserGroup.LookUpError) {
        permissions.groupID = try UserGroup.id(of: group)
      } catch {
        reader.report("group", error.description)
      }
    }
    return permissions
  }

  /// Read and write bits, those of the owner included; nil for anything else.
  private static func fileMode(_ text: String) -> UInt32? {
    guard (3...4).contains(text.utf8.count), let mode = UInt32(text, radix: 8),
      mode & 0o600 == 0o600, mode & ~0o666 == 0
    else { return nil }
    return mode
  }
}
