import Checkpoint
import FileSink
import JSON
import Pipeline
import PostgresSink

/// Removes some records from the payloads of a pipeline's dead letters.
///
/// A letter about no other record loses its payload. If it waits, it is dropped before, because its
/// event cannot be restored.
struct LetterErasure {
  private let configuration: PipelineConfiguration
  private let erased: ErasedRecords
  private let entity: String

  /// The letters that were found.
  struct Found {
    /// With the members that their lines get for the payload.
    var letters: [DeadLetterLedger.Key: [JSONMember]] = [:]
    /// Those among them that wait and lose their payload.
    var waiting: [DeadLetterLedger.Key] = []
    var places: [CheckpointTable.LetterPlace] = []
    /// Letters that cannot be searched, as text.
    var faults: [String] = []
  }

  init(_ erasure: ErasureRequest) {
    self.configuration = erasure.configuration
    self.entity = erasure.entity
    var erased = ErasedRecords()
    for record in erasure.records { erased.insert(record, of: erasure.entity) }
    self.erased = erased
  }

  /// Searches all letters, also those that were retried or dropped.
  func find() throws -> Found {
    let book = try DeadLetterBook(self.configuration)
    var all = DeadLetterSelection()
    all.includesHandled = true
    var found = Found()
    let damaged = try book.visit(all) { letter, outcome in
      guard letter.hasPayload, self.isSearched(letter.letter.topic) else { return }
      let keys = self.configuration.deadLetter.keys
      var payload: [UInt8]?
      do throws(SealedPayloadError) {
        let opened = try letter.opened(with: keys)
        switch self.erased.remainder(of: opened.letter.payload, topic: letter.letter.topic) {
        case .all: return
        case .others(let others): payload = others
        case .nothing: break
        }
      } catch {
        // Nobody needs the payload of a letter that does not wait.
        guard outcome != nil else {
          found.faults.append(
            "dead letter \(letter.id) may be about a record: \(error.description). Or retry or drop the "
              + "letter, and run 'erase' again")
          return
        }
      }
      found.letters[DeadLetterLedger.Key(letter)] = letter.members(
        ofPayload: payload, keys: keys)
      if outcome == nil, payload == nil {
        found.waiting.append(DeadLetterLedger.Key(letter))
        found.places.append(CheckpointTable.LetterPlace(letter))
      }
    }
    found.faults += damaged.map { "dead letters: \($0.fault)" }
    return found
  }

  private func isSearched(_ topic: String) -> Bool {
    TopicName.hasChanges(topic)
      && (TopicName.isChannel(topic) || TopicName.entity(topic) == self.entity)
  }

  /// Safe to repeat: a letter keeps its payload until all else is durable.
  ///
  /// - Returns: what could not be changed, as text.
  func erase(_ found: Found, _ document: CheckpointDocument?) throws -> [String] {
    guard !found.letters.isEmpty else { return [] }
    if !found.waiting.isEmpty {
      try SinkDatabases(self.configuration).drop(found.places)
      var ledger = try DeadLetterBook(self.configuration).ledger
      try ledger.note(.dropped, found.waiting)
    }
    return try FileErasure(
      found.letters, inDeadLettersOf: self.configuration.name,
      directory: self.configuration.deadLetter.directory, state: document?.deadLetters?.json
    ).run().faults
  }
}
