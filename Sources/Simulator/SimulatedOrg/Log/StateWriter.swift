internal import Glibc

// The state file: the org's records, for comparison with a copy.
//
// NDJSON, UTF-8, LF. One line per record that is not purged, by object and ID. Made from the generator's
// records by the encoder's way of taking values, not by that of REST. Keys, always all of them:
//
//   entity           string   API name
//   id               string   18 characters
//   is_deleted       boolean  in the recycle bin
//   system_modstamp  integer  epoch ms
//   fields           object   as in the truth file (`TruthWriter`), by the newest schema: values that are
//                             not null, compound fields as objects

/// Writes the state file.
enum StateWriter {
  /// Replaces a file that exists.
  static func write(_ generator: EventGenerator, to path: String) throws {
    guard let file = fopen(path, "we") else { throw SimulatorError.system("open(\"\(path)\")") }
    var line: [UInt8] = []
    var isWritten = true
    for (index, model) in generator.models.enumerated() {
      guard model.category == .changeEvent, let schema = model.versions.last else { continue }
      var image = EventImage(entity: model, schema: schema)
      for (number, record) in generator.pools[index].records.enumerated() where !record.isPurged {
        image.reset(entity: model, schema: schema)
        for slot in schema.positions.indices where schema.positions[slot] != nil {
          generator.setCell(index, number, slot, into: &image)
        }
        line.removeAll(keepingCapacity: true)
        line += "{\"entity\":\"\(model.entity)\",\"id\":".utf8
        JSONText.append(record.id[...], to: &line)
        line += ",\"is_deleted\":\(record.isDeleted)".utf8
        line += ",\"system_modstamp\":\(record.stampedAt),\"fields\":{".utf8
        image.appendFields(to: &line)
        line += "}}\n".utf8
        isWritten = isWritten && fwrite(line, 1, line.count, file) == line.count
      }
    }
    isWritten = fclose(file) == 0 && isWritten
    if !isWritten { throw SimulatorError.system("write(\"\(path)\")") }
  }
}
