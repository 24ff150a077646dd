internal import Clocks
internal import EventLoop
import Logging
import Pipeline
import PubSubSource
import SalesforceREST

/// Asks the org how fields are classified, before stages that mask by classification see a layout:
/// once per object, again for each new schema, and again when the answer is some minutes old.
///
/// Nothing is kept for the next run, which queries the org again. A failed query ends the run. Used
/// from any task.
final class ClassificationInquiry: Sendable {
  /// An admin may classify a field at any time, without any event. Costs a call per object.
  private static let maxAge = Duration.seconds(300)
  private static let right = "ViewSetup"

  /// What the stages read.
  let known = OrgClassification()
  private let selectors: [ClassificationSelector]
  private let client: RESTClient
  private let retry: RetrySchedule
  private let logger: Logger?

  private struct State {
    var askedAt: [String: ContinuousClock.Instant] = [:]
    var hasRight = false
  }
  private let state = Lock(State())

  /// - Parameters:
  ///   - retry: how long to wait for the org.
  ///   - logger: the run's logger.
  /// - Returns: nil if no stage selects by classification.
  init?(
    _ configuration: PipelineConfiguration, _ client: RESTClient, retry: RetrySchedule,
    logger: Logger? = nil
  ) {
    self.selectors = configuration.classificationSelectors
    guard !self.selectors.isEmpty else { return nil }
    self.client = client
    self.retry = retry
    self.logger = logger
  }

  /// Makes sure that the classification is known before stages see the layouts.
  ///
  /// - Throws: `RunFailure`.
  func prepare(_ layouts: [RecordLayout]) async throws {
    try await self.renew(layouts.map { ($0.entity, $0.schemaID) })
  }

  /// For a source, which calls it before it passes on a response.
  var beforeHandingOn:
    @Sendable ([PubSubSourceOptions.SchemaOfObject]) async throws(SourceFailure) -> Void
  {
    { schemas async throws(SourceFailure) in try await self.prepare(schemas) }
  }

  private func prepare(
    _ schemas: [PubSubSourceOptions.SchemaOfObject]
  ) async throws(SourceFailure) {
    do {
      try await self.renew(schemas.map { ($0.entity, $0.schemaID) })
    } catch {
      let failure = RunFailure(error)
      let disposition: SourceFailure.Disposition =
        switch failure.exitCode {
        case .unavailable: .unavailable
        case .tryAgain: .quota
        case .refused: .refused
        default: .configuration
        }
      throw SourceFailure(disposition, reason: failure.word, failure.message)
    }
  }

  private func renew(_ schemas: [(entity: String, schemaID: String)]) async throws {
    for (entity, schemaID) in schemas where self.known.object(entity, schemaID: schemaID) == nil {
      self.note(entity)
      try await self.learn(entity, schemaID: schemaID)
    }
    for entity in self.takeStale() { try await self.learn(entity, schemaID: nil) }
  }

  private func note(_ entity: String) {
    let now = self.client.clock.now
    self.state.withLock { $0.askedAt[entity] = now }
  }

  /// Objects whose answers are too old. They count as queried from now on, so concurrent callers
  /// leave them to this one.
  private func takeStale() -> [String] {
    let now = self.client.clock.now
    return self.state.withLock { state in
      let stale = state.askedAt.filter { $0.value + Self.maxAge <= now }.map(\.key).sorted()
      for entity in stale { state.askedAt[entity] = now }
      return stale
    }
  }

  private func learn(_ entity: String, schemaID: String?) async throws {
    guard SOQL.isName(entity) else {
      throw RunFailure(
        .classification,
        "the classification of an object with an unusable name cannot be read")
    }
    let answer = try await self.patiently(entity) { try await self.ask(entity) }
    let changed = self.known.learn(
      answer, of: entity, schemaID: schemaID, selectors: self.selectors)
    guard changed.isEmpty else {
      throw RunFailure(
        .classificationChanged,
        "the org now classifies fields of \(entity) otherwise "
          + "(\(changed.prefix(10).joined(separator: ", "))"
          + (changed.count > 10 ? " and \(changed.count - 10) more" : "")
          + "), so this run ends before it exports more of them; the next run masks by the new "
          + "classification")
    }
  }

  private func ask(_ entity: String) async throws -> ObjectClassification {
    if !self.state.withLock({ $0.hasRight }) {
      guard try await self.client.granted(of: [Self.right]).contains(Self.right) else {
        throw RunFailure(
          .classification, code: .refused,
          "\"classified\" needs the user permission View Setup and Configuration, which the run-as user "
            + "lacks; pubsub-etl permissions writes a permission set with it")
      }
      self.state.withLock { $0.hasRight = true }
    }
    let fields = try await self.client.fieldDefinitions(of: entity)
    var object = ObjectClassification()
    for field in fields { object.add(field.name, FieldClassification(field)) }
    guard entity == "Account", fields.contains(where: \.isOfPerson) else { return object }
    // The fields of a person account belong to its contact, and are classified only there.
    for field in try await self.client.fieldDefinitions(of: "Contact") {
      for name in field.namesInAccount { object.add(name, FieldClassification(field)) }
    }
    return object
  }

  private func patiently<Value>(
    _ entity: String, _ body: () async throws -> Value
  ) async throws -> Value {
    var retries = Retries(self.retry)
    while true {
      do {
        return try await body()
      } catch {
        let failure = RunFailure(error)
        let now = self.client.clock.now
        let message =
          error is RunFailure
          ? failure.message
          : "how the fields of \(entity) are classified cannot be read: \(failure.message)"
        guard failure.exitCode == .unavailable,
          let delay = retries.failed(at: now, random: .random(in: 0..<1))
        else {
          throw RunFailure(
            word: failure.exitCode == .refused ? EndReason.classification.rawValue : failure.word,
            code: failure.exitCode,
            message + (failure.exitCode == .unavailable ? retries.verdict(at: now) : ""))
        }
        self.logger?.warning("\(message); retrying in \(Phrase.duration(delay))")
        try await self.client.clock.sleep(for: delay)
      }
    }
  }
}

extension FieldClassification {
  fileprivate init(_ field: FieldDefinition) {
    self.init(
      compliance: field.compliance, sensitivity: [field.sensitivity].compactMap { $0 })
  }
}

extension FieldDefinition {
  /// Whether the field shows that the org has person accounts.
  fileprivate var isOfPerson: Bool {
    self.name == "IsPersonAccount" || self.name.hasPrefix("Person") || self.name.hasSuffix("__pc")
  }

  private static let partsOfNames = [
    "Salutation", "FirstName", "MiddleName", "LastName", "Suffix", "InformalName",
  ]

  /// The names that accounts have for a field of their contact. Parts of the name and two phone
  /// numbers have the same names in both.
  var namesInAccount: [String] {
    if self.name == "Name" { return Self.partsOfNames }
    if self.name.hasSuffix("__c") { return ["\(self.name.dropLast(3))__pc"] }
    let isShared = Self.partsOfNames.contains(self.name) || ["Phone", "Fax"].contains(self.name)
    return (isShared ? [self.name] : []) + ["Person\(self.name)"]
  }
}
