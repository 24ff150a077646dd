internal import Bytes
internal import JSON
internal import Pipeline

/// The columns of an object's lines that are compared, by their keys, and the keys that give a line
/// its meaning.
struct ComparedColumns {
  /// Keys of lines other than those of columns; their numbers follow those of the columns.
  enum Meta: Int, CaseIterable {
    case recordID, kind, changeType, changedFields, nulledFields, diffFields, commitTimestamp
    case stamp, readAt, epoch, ordinal

    var name: String {
      switch self {
      case .recordID: "_record_id"
      case .kind: "_kind"
      case .changeType: "_change_type"
      case .changedFields: "_changed_fields"
      case .nulledFields: "_nulled_fields"
      case .diffFields: "_diff_fields"
      case .commitTimestamp: "_commit_timestamp"
      case .stamp: ReadColumn.stamp
      case .readAt: ReadColumn.readAt
      case .epoch: ReadColumn.epoch
      case .ordinal: ReadColumn.ordinal
      }
    }

    /// Set by reads, not by a slot of the layout.
    var isOfReads: Bool { self.rawValue >= Self.stamp.rawValue }
  }

  /// Dotted, by column.
  let paths: [String]
  let leftOut: [CopyFindings.LeftOut]
  /// Columns that the records of the files lack, although the org has values for them.
  let unfilled: [CopyFindings.LeftOut]
  let keys: KeyTable

  var count: Int { self.paths.count }

  /// - Parameters:
  ///   - layout: after all stages.
  ///   - excluding: names of fields that are not compared.
  ///   - unread: names of fields that the org does not return, `Parent.Child` for a part.
  ///   - unfilled: names of columns that lines of reads lack.
  /// - Throws: `FileSinkError.unverifiable` if a stage has removed the columns that show the order
  ///   or the fields of changes.
  init(
    _ layout: RecordLayout, excluding: Set<String> = [], unread: Set<String> = [],
    unfilled: Set<String> = []
  ) throws(FileSinkError) {
    for meta in Meta.allCases {
      let has = layout.columns.contains { $0.name == meta.name && $0.isMetadata }
      let isTaken = layout.columns.contains { $0.name == meta.name && !$0.isMetadata }
      guard meta.isOfReads ? !isTaken : has && !isTaken else {
        throw FileSinkError(
          .unverifiable,
          "files of \(layout.entity) cannot be compared: their lines have no column "
            + "\(meta.name) as this program writes it; leave it out of the stages drop, rename and "
            + "select, and do not set record_ids to array")
      }
    }
    var paths: [String] = []
    var leftOut: [CopyFindings.LeftOut] = []
    var unfilledFields: [CopyFindings.LeftOut] = []
    var keys = KeyTable()
    for column in layout.columns where !column.isMetadata {
      if let field = column.path.first, excluding.contains(field) { continue }
      let path = column.path.joined(separator: ".")
      switch column.content {
      case .constant: continue
      case .record:
        leftOut.append(
          CopyFindings.LeftOut(
            field: path, reason: "it is not flattened, and an update has only parts of it"))
        continue
      case .slot where unfilled.contains(column.name) && !unread.contains(path):
        unfilledFields.append(
          CopyFindings.LeftOut(
            field: path,
            reason: "the records in the files were read without it; run 'pubsub-etl snapshot' to "
              + "read them again"))
        continue
      case .slot: break
      }
      keys.insert(Self.key(column.name))
      paths.append(path)
    }
    for meta in Meta.allCases { keys.insert(Self.key(meta.name)) }
    self.paths = paths
    self.leftOut = leftOut
    self.unfilled = unfilledFields
    self.keys = keys
  }

  /// The key as a line has it, with its escapes.
  private static func key(_ name: String) -> [UInt8] {
    var text = ByteBuffer()
    text.appendJSONString(name)
    return Array(text.bytes.dropFirst().dropLast())
  }
}
