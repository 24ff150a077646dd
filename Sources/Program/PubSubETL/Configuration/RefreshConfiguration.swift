import Bytes
import HTTPClient
import JSON
import Pipeline

/// Fields that change without events, whose values are read again and again (`source.refresh`).
struct RefreshConfiguration: KeyedObject, Sendable, Equatable {
  enum Fields: Sendable, Equatable {
    /// Every formula and roll-up that the run-as user may see.
    case blind
    /// Names of fields, by object.
    case listed([String: Set<String>])
  }

  var fields = Fields.blind
  var every = Duration.seconds(24 * 3600)

  /// More often would cost more calls than most orgs can spare.
  private static let minInterval = Duration.seconds(3600)

  static var keys: [Key<Self>] {
    let day = Duration.seconds(24 * 3600)
    return [
      .required(
        "fields", \.fields, .refreshed,
        "blind: every formula and roll-up, also those that events do not have; or a list of fields, "
          + "each with its object.", example: ["Opportunity.Days_Open__c"]),
      .key(
        "every", \.every, .duration(in: .seconds(1)...day * 30),
        "Time between two reads; less than 1h for loopback addresses only.", example: "12h"),
    ]
  }

  /// Checks what depends on the rest of the source.
  func check(_ reader: JSONReader, in source: SourceConfiguration) {
    if self.every < Self.minInterval, !source.org.isLocal {
      reader.report("every", "expected at least 1h; less is for loopback addresses only")
    }
    let copied = source.snapshotObjects.map(\.entity)
    guard case .listed = self.fields else {
      if copied.isEmpty {
        reader.report(
          "fields",
          "no object's records are copied: list the objects of channels in source.snapshot.objects")
      }
      return
    }
    for element in reader.elements("fields") ?? [] {
      guard let object = element.value.string?.split(separator: ".").first.map({ String($0) }),
        !copied.contains(object)
      else { continue }
      reader.report(
        element,
        source.lookups.objects.contains(object)
          ? "\(object) is in source.lookups, which reads its records anyway"
          : "no topic brings the changes of \(object)"
            + (copied.isEmpty ? "" : "; known: \(copied.joined(separator: ", "))"))
    }
  }

  /// Nil for an object without such fields.
  func refresh(of entity: String) -> Refresh? {
    switch self.fields {
    case .blind: return Refresh(fields: nil, every: self.every)
    case .listed(let fields):
      return fields[entity].map { Refresh(fields: $0, every: self.every) }
    }
  }
}

extension SourceConfiguration {
  /// The objects with fields that are read again and again, and the topics of their changes.
  var refreshes: [(entity: String, topic: String, refresh: Refresh)] {
    guard let refresh else { return [] }
    return self.snapshotObjects.compactMap { entity, topic in
      refresh.refresh(of: entity).map { (entity, topic, $0) }
    }
  }

  /// The keys of their passes.
  var refreshKeys: Set<String> { Set(self.refreshes.map { $0.refresh.key(of: $0.entity) }) }
}

extension Kind<RefreshConfiguration.Fields> {
  private enum Preset: String, CaseIterable { case blind }

  fileprivate static var refreshed: Self {
    let name = JSONSchema.text(pattern: #"^[A-Za-z]\w*\.[A-Za-z]\w*$"#)
    return Self(.oneOf([.choice(of: Preset.self), .list(of: name, minCount: 1)])) {
      reader, name, isRequired in
      guard let value = reader.any(name, required: isRequired) else { return nil }
      guard case .array(let elements) = value.content else {
        return reader.choice(name, of: Preset.self, others: ["a list of fields"]).map { _ in .blind
        }
      }
      if elements.isEmpty { reader.report(name, "expected at least one field") }
      var fields: [String: Set<String>] = [:]
      for element in reader.elements(name) ?? [] {
        let parts = element.value.string?.split(separator: ".", omittingEmptySubsequences: false)
        guard let parts, parts.count == 2, parts.allSatisfy(Self.isName) else {
          reader.report(
            element, "expected an object and a field of it, such as Opportunity.Days_Open__c")
          continue
        }
        let (object, field) = (String(parts[0]), String(parts[1]))
        if Refresh.ofEveryRow.contains(field) {
          reader.report(element, "rows have \(field) anyway, as id or _deleted_at")
        }
        if !fields[object, default: []].insert(field).inserted {
          reader.report(element, "the field \(object).\(field) is listed twice")
        }
      }
      return .listed(fields)
    }
  }

  private static func isName(_ text: Substring) -> Bool {
    text.utf8.count <= 80 && text.utf8.first?.isLetter == true
      && text.utf8.allSatisfy(\.isWordCharacter)
  }
}
