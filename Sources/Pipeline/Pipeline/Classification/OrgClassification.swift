internal import EventLoop

/// The known classifications of an org's fields. Stages read them when they first see a layout, by
/// when the caller has queried the org. Used from any thread.
package final class OrgClassification: Sendable {
  private struct Known {
    var object: ObjectClassification
    /// Schemas known when the org was queried. An earlier answer may lack the new fields of a
    /// schema.
    var schemaIDs: Set<String>
  }

  private let objects = Lock<[String: Known]>([:])

  package init() {}

  /// - Returns: nil if the org has not been queried since the schema was first seen.
  package func object(_ entity: String, schemaID: String) -> ObjectClassification? {
    self.objects.withLock { objects in
      objects[entity].flatMap { $0.schemaIDs.contains(schemaID) ? $0.object : nil }
    }
  }

  /// Processes an answer from the org.
  ///
  /// - Parameters:
  ///   - schemaID: a schema first seen before the query; nil for a query without a new schema.
  ///   - selectors: the pipeline's selectors.
  /// - Returns: names of previously known fields for which some selector now decides differently.
  ///   Layouts that stages already know still follow the earlier answer.
  package func learn(
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
