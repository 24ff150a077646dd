internal import Foundation
internal import JSON
internal import SimulatedOrg

/// What a file of faults says (`--faults`): faults, quotas, fields that the user may not see.
///
///     {"version": 1, "seed": 7,
///      "faults": [{"at": {"event": 120}, "what": "service.unavailable"}],
///      "quotas": {"deliveries_per_day": 1000, "streams": 2, "logins_per_hour": 20,
///                 "api_calls_per_day": 5000},
///      "hidden_fields": ["Opportunity.NextStep"]}
package struct FaultScript: Sendable, Equatable {
  package var faults: [ScriptedFault] = []
  /// Nil: what the options say.
  package var deliveriesPerDay: Int?
  package var streams: Int?
  package var loginsPerHour: Int?
  package var callsPerDay: Int?
  /// `Object.Field`
  package var hiddenFields: [String] = []

  /// - Throws: `SimulatorError` with all mistakes, one per line, each with line, path and choices.
  package init(contentsOf path: String) throws {
    guard let data = FileManager.default.contents(atPath: path),
      let text = String(data: data, encoding: .utf8)
    else { throw SimulatorError(.configuration, "\(path): cannot be read as UTF-8 text") }
    try self.init(json: text, name: path)
  }

  /// - Parameter name: of the file, for messages.
  package init(json: String, name: String) throws {
    let document = try JSONDocument.parse(json, name: name)
    let mistakes = JSONMistakes()
    let reader = JSONReader(document, mistakes: mistakes)
    _ = reader.integer("version", in: 1...1, required: true)
    let seed = UInt64(reader.integer("seed", in: 0 ... .max) ?? 1)
    // Wrapping: any seed is as good as another.
    self.faults = (reader.objects("faults") ?? []).enumerated().compactMap {
      ScriptedFault.read($0.element, seed: (seed &* 1000) &+ UInt64($0.offset))
    }
    if let quotas = reader.object("quotas") {
      self.deliveriesPerDay = quotas.integer("deliveries_per_day", in: 0...1_000_000_000)
      self.streams = quotas.integer("streams", in: 0...100_000)
      self.loginsPerHour = quotas.integer("logins_per_hour", in: 0...1_000_000)
      self.callsPerDay = quotas.integer("api_calls_per_day", in: 0...1_000_000_000)
      quotas.finish()
    }
    for (index, field) in (reader.strings("hidden_fields") ?? []).enumerated() {
      let parts = field.split(separator: ".", omittingEmptySubsequences: false)
      guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty }) else {
        mistakes.append(
          JSONMistake(
            path: "/hidden_fields/\(index)", position: document.position,
            message: "expected Object.Field, such as \"Opportunity.NextStep\""))
        continue
      }
      self.hiddenFields.append(field)
    }
    reader.finish()
    try JSONDocument.check(mistakes, name: name)
  }

  /// Sets what the org is to have from its start; the faults are added to the server.
  package func set(_ configuration: inout SimulatorConfiguration) {
    if let limit = self.deliveriesPerDay { configuration.org.deliveryLimit = limit }
    if let limit = self.callsPerDay { configuration.org.callLimit = limit }
    configuration.org.streamLimit = self.streams
    configuration.org.loginLimit = self.loginsPerHour
    configuration.org.hiddenFields += self.hiddenFields
  }
}
