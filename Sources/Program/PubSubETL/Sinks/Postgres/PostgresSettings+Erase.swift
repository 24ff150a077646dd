import Pipeline
import PostgresSink

extension PostgresSettings: ErasingSink {
  var output: String { "PostgreSQL, schema \(self.sink.schema)" }

  private func table(_ configuration: PipelineConfiguration) throws -> CheckpointTable {
    try CheckpointTable(
      pipeline: configuration.name, sink: self.name, self.sink(of: configuration))
  }

  func erasedRecords(_ configuration: PipelineConfiguration) throws -> ErasedRecords {
    try self.table(configuration).erasedRecords()
  }

  func objects(_ configuration: PipelineConfiguration) throws -> [String] {
    try self.table(configuration).entities()
  }

  func keyPrefix(of entity: String, _ configuration: PipelineConfiguration) throws -> String? {
    try self.table(configuration).keyPrefix(of: entity)
  }

  func examine(_ erasure: ErasureRequest) throws -> ErasureResult {
    self.result(
      try self.table(erasure.configuration).erasableRows(
        erasure.records, of: erasure.entity, removesDeleted: self.sink.delete == .remove))
  }

  func noteErased(_ erasure: ErasureRequest) throws {
    guard let owner = erasure.owner else { preconditionFailure("a change without an owner") }
    try self.table(erasure.configuration).noteErased(
      erasure.records, of: erasure.entity, owner: LeaseOwner(owner))
  }

  func erase(_ erasure: ErasureRequest) throws -> ErasureResult {
    guard let owner = erasure.owner else { preconditionFailure("a change without an owner") }
    return self.result(
      try self.table(erasure.configuration).erase(
        erasure.records, of: erasure.entity, removesDeleted: self.sink.delete == .remove,
        owner: LeaseOwner(owner)))
  }

  private func result(_ tables: [ErasedRows]) -> ErasureResult {
    ErasureResult(
      unit: "row",
      parts: tables.filter { $0.rowCount > 0 }.map { .init(name: $0.table, count: $0.rowCount) })
  }
}
