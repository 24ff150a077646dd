import JSON

extension PostgresSettings: DraftedSink {
  static func draft(pipeline: String) -> [JSONMember] {
    [JSONMember("url", "${DATABASE_URL}")]
  }

  static func draft(destination: String) throws(DestinationMistake) -> SinkDraft? {
    guard ["postgresql://", "postgres://"].contains(where: destination.hasPrefix) else {
      return nil
    }
    guard self.passwords(in: destination).isEmpty else {
      throw DestinationMistake(
        description: "other users can read a password on the command line; leave it out, and put "
          + "it into ~/.pgpass or the variable PGPASSWORD")
    }
    return SinkDraft(members: [JSONMember("url", .string(Interpolation.literal(destination)))])
  }
}
