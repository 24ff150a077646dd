internal import EventLoop

/// How the fields of an org are classified, as far as the org has been asked. Stages look here when they
/// first see a layout; whoever hands them one has asked before. Used from any thread.
public final class OrgClassification: Sendable {
  private struct Known {
    var object: ObjectClassification
    /// Schemas that were there when the org was asked: an answer from before a schema may lack its new
    /// fields.
    var schemaIDs: Set<String>
  }

  private let objects = Lock<[String: Known]>([:])

  public init() {}

  /// - Returns: nil when the org has not been asked since the schema was first seen.
  public func object(_ entity: String, schemaID: String) -> ObjectClassification? {
    self.objects.withLock { objects in
      objects[entity].flatMap { $0.schemaIDs.contains(schemaID) ? $0.object : nil }
    }
  }

  /// Takes an answer of the org.
  ///
  /// - Parameters:
  ///   - schemaID: that the answer is not older than; nil when it is asked for without a new one.
  ///   - selectors: those of the pipeline.
  /// - Returns: names of fields that an earlier answer had, and of which some selector now says something
  ///   else: layouts that stages know already treat them by the earlier one.
  public func learn(
    _ answer: ObjectClassification, of entity: String, schemaID: String?,
    selectors: [ClassificationSelector]
  ) -> [String] {
    self.objects.withLock { objects in
      guard var known = objects[entity] else {
        objects[entity] = Known(object: answer, schemaIDs: Set([schemaID].compactMap { $0 }))
        return []
      }
      let changed = answer.names.filter { name in
        guard let old = known.object[name], let new = answer[name] else { return false }
        return selectors.contains { $0.selects(old) != $0.selects(new) }
      }
      known.object.renew(answer)
      if let schemaID { known.schemaIDs.insert(schemaID) }
      objects[entity] = known
      return changed.sorted()
    }
  }
}
