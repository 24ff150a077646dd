import Checkpoint
import FileSink
import Glibc
import JSON
import Pipeline

extension FilesSettings: ErasingSink {
  var output: String { "files in \(self.directory)" }

  func erasedRecords(_ configuration: PipelineConfiguration) throws -> ErasedRecords {
    try ErasedList(directory: self.directory).records()
  }

  func objects(_ configuration: PipelineConfiguration) throws -> [String] {
    var objects: Set<String> = []
    for kind in [ExportedFile.Kind.records, .redriven, .snapshots] {
      try ExportedFile.visit(kind, in: self.directory, pipeline: configuration.name) { file in
        if let folder = file.name.split(separator: "/").first { objects.insert(String(folder)) }
      }
    }
    return objects.sorted()
  }

  func keyPrefix(of entity: String, _ configuration: PipelineConfiguration) -> String? { nil }

  func examine(_ erasure: ErasureRequest) throws -> ErasureResult {
    self.result(try self.files(erasure).examine())
  }

  func noteErased(_ erasure: ErasureRequest) throws {
    try ErasedList(directory: self.directory, permissions: self.permissions).add(
      erasure.records, of: erasure.entity, clock: erasure.clock)
  }

  func erase(_ erasure: ErasureRequest) throws -> ErasureResult {
    self.result(try self.files(erasure).run())
  }

  private func files(_ erasure: ErasureRequest) -> FileErasure {
    FileErasure(
      erasure.records, of: erasure.entity,
      in: self.finishing(erasure.configuration, org: erasure.document?.org ?? ""),
      state: erasure.document?.sinks[self.name]?.json
    ) { usleep(UInt32(clamping: Int64($0 / .microseconds(1)))) }
  }

  private func result(_ found: FileErasure.Result) -> ErasureResult {
    ErasureResult(
      unit: "line", parts: found.files.map { .init(name: $0.name, count: $0.lineCount) },
      faults: found.faults)
  }

  /// The sink as it keeps no file open.
  func finishing(_ configuration: PipelineConfiguration, org: String) -> FileSinkConfiguration {
    FileSinkConfiguration(
      name: self.name, directory: self.directory, compressionLevel: self.compressionLevel,
      rotation: FileSinkConfiguration.Rotation(
        maxByteCount: self.rotateBytes, maxEventCount: self.rotateEvents),
      pipeline: configuration.name, org: org,
      format: NDJSONFormat(int64AsStrings: self.int64 == .string),
      whenMissing: self.whenMissing, permissions: self.permissions)
  }
}
