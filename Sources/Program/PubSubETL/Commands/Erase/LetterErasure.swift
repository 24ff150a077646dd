import Checkpoint
import FileSink
import JSON
import Pipeline
import PostgresSink

/// Removes the payloads of a pipeline's dead letters about some records.
///
/// A letter that waits is dropped before, because its event cannot be restored without the payload.
struct LetterErasure {
  private let configuration: PipelineConfiguration
  private let erased: ErasedRecords
  private let entity: String

  /// The letters that were found.
  struct Found {
    var letters: Set<DeadLetterLedger.Key> = []
    /// Those among them that wait.
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
      do throws(SealedPayloadError) {
        let opened = try letter.opened(with: self.configuration.deadLetter.keys)
        guard self.erased.areNamed(in: opened.letter.payload, topic: letter.letter.topic) else {
          return
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
      found.letters.insert(DeadLetterLedger.Key(letter))
      if outcome == nil {
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
