import Cryptography
import FileSink
import GRPCCore
import Pipeline
import PubSubAPI
import PubSubSource
import SchemaStore

/// Decodes events of dead letters by their schemas: those that runs have kept, and else those of the
/// service, which are asked for once each.
final class LetterDecoders {
  private struct Key: Hashable {
    var topic: String
    var schemaID: String
  }

  private let session: Session
  private let keys: [SealingKey]
  /// Whether letters in the clear are taken.
  private let takesUnsealed: Bool
  private var decoders: [Key: Result<AvroEventDecoder, UndecodableEvent>] = [:]
  /// Schemas that letters have shown to be outdated, and that were fetched again.
  private var renewed: Set<Key> = []

  init(_ session: Session, takesUnsealed: Bool) {
    self.session = session
    self.keys = session.configuration.deadLetter.keys
    self.takesUnsealed = takesUnsealed
  }

  /// Asks the service for the schema of a letter, and the org for its classification, unless that was done.
  /// Asks for the schema again if the letter shows that the stored one is outdated.
  ///
  /// - Throws: `PubSubError` when the service does not answer, `RunFailure` for the org.
  func prepare(for letter: StoredDeadLetter) async throws {
    let key = Key(topic: letter.letter.topic, schemaID: letter.letter.schemaID)
    if self.decoders[key] == nil { try await self.load(key) }
    guard letter.letter.fieldPath != nil, !self.renewed.contains(key), self.isOutdated(letter)
    else { return }
    self.renewed.insert(key)
    try await self.load(key)
  }

  private func load(_ key: Key) async throws {
    let decoder = try await self.decoder(key)
    if let layout = try? decoder.get().layout { try await self.session.inquiry?.prepare([layout]) }
    self.decoders[key] = decoder
  }

  private func isOutdated(_ letter: StoredDeadLetter) -> Bool {
    do throws(UndecodableEvent) {
      _ = try self.decode(letter)
      return false
    } catch {
      return error.isOfOutdatedSchema
    }
  }

  private func decoder(_ key: Key) async throws -> Result<AvroEventDecoder, UndecodableEvent> {
    guard !key.schemaID.isEmpty else {
      return .failure(UndecodableEvent(reason: "the event names no schema"))
    }
    let text = try await self.text(of: key.schemaID, isRenewed: self.renewed.contains(key))
    return text.flatMap { json in
      do throws(EventDecodingError) {
        return .success(
          try AvroEventDecoder(
            json: json, schemaID: key.schemaID, topic: key.topic,
            options: self.session.assembly.decoding))
      } catch {
        return .failure(UndecodableEvent(reason: error.reason, fieldPath: error.path))
      }
    }
  }

  private func text(
    of id: String, isRenewed: Bool
  ) async throws -> Result<String, UndecodableEvent> {
    do {
      return .success(
        try await self.session.schemas.json(of: id, isRenewed: isRenewed) {
          let connection = self.session.connection
          let used = try await connection.credentials.credentials()
          return try await connection.service.schema(id: id, credentials: used).json
        })
    } catch {
      let error = PubSubError(error, operation: "GetSchema \(id)")
      if error.status != .invalidArgument, error.status != .notFound {
        switch error.disposition(sentReplayID: false) {
        case .retry, .reauthenticate, .quota, .bug: throw error
        // The service does not know it any more, or does not show it to this user.
        default: break
        }
      }
      if let known = self.session.schemas.forgotten(id) { return .success(known) }
      return .failure(UndecodableEvent(reason: error.message))
    }
  }

  /// The rows of a letter's event, at its place in the stream.
  ///
  /// - Throws: `UndecodableEvent`.
  func decode(_ letter: StoredDeadLetter) throws(UndecodableEvent) -> RecordBatch {
    let key = Key(topic: letter.letter.topic, schemaID: letter.letter.schemaID)
    guard let known = self.decoders[key] else {
      preconditionFailure("\(letter.id): decoded before its schema was asked for")
    }
    guard letter.hasPayload else {
      throw UndecodableEvent(
        reason: "the letter has no payload (dead_letter.payload was none when it was written)")
    }
    guard self.takesUnsealed || letter.sealed != nil else {
      throw UndecodableEvent(
        reason:
          "its payload is not sealed, and dead_letter.payload is \"sealed\": the letter is older "
          + "than that, or somebody wrote it into the file; if you know where it is from, retry it "
          + "with --accept-unsealed")
    }
    let payload: [UInt8]
    do {
      payload = try letter.opened(with: self.keys).letter.payload
    } catch {
      throw UndecodableEvent(reason: "\(error)")
    }
    let decoder = try known.get()
    let batch = RecordBatch(layout: decoder.layout)
    do {
      try Array(letter.letter.eventID.utf8).withUnsafeBufferPointer { eventID in
        try letter.letter.replayID.bytes.withUnsafeBufferPointer { replayID in
          try payload.withUnsafeBufferPointer { payload in
            _ = try decoder.decode(
              eventID: eventID, replayID: replayID, payload: payload, into: batch)
          }
        }
      }
    } catch let error as EventDecodingError {
      throw UndecodableEvent(
        reason: error.reason, fieldPath: error.path, offset: error.byteOffset,
        isOfOutdatedSchema: error.code == .outdated)
    } catch {
      preconditionFailure("decode throws nothing but EventDecodingError: \(error)")
    }
    batch.epoch = letter.letter.epoch
    batch.isRedriven = true
    for index in batch.events.indices { batch.events[index].ordinal = letter.letter.ordinal }
    return batch
  }
}
