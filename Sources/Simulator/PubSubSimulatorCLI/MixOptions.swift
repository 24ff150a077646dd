import ArgumentParser
import PubSubSimulator
import SimulatedOrg

struct MixOptions: ParsableArguments {
  private static let usual = GeneratorMix()

  @Option(help: "Gap events.") var gaps = Self.usual.gaps
  @Option(help: "Overflow events.") var overflows = Self.usual.overflows
  @Option(help: "Wildcard events.") var wildcards = Self.usual.wildcards
  @Option(help: "Changes of several records in one event.") var merged = Self.usual.merged
  @Option(help: "Edits of long texts, sent as diffs.") var diffs = Self.usual.diffs
  @Option(help: "Updates of coordinates by the platform.") var geocodes = Self.usual.geocodes
  @Option(help: "Platform events among all.") var platformEvents = Self.usual.platformEvents
  @Option(help: "Events of nearly 1 MB for up to 200 records.") var large = Self.usual.large
  @Option(help: "Changed fields that are set to null.") var nulls = Self.usual.nulls
  @Option(help: "Texts with emoji, control characters, U+0000.") var exotic = Self.usual.exotic
  @Option(help: "Very large and very small numbers.") var extremes = Self.usual.extremes
  @Option(help: "Stamps of records that move without an event, where there are records to read.")
  var silent = Self.usual.silent
  @Option(help: "NaN and infinities.") var nonfinite = Self.usual.nonfinite

  var mix: GeneratorMix {
    var mix = GeneratorMix()
    mix.gaps = self.gaps
    mix.overflows = self.overflows
    mix.wildcards = self.wildcards
    mix.merged = self.merged
    mix.diffs = self.diffs
    mix.geocodes = self.geocodes
    mix.platformEvents = self.platformEvents
    mix.large = self.large
    mix.nulls = self.nulls
    mix.exotic = self.exotic
    mix.extremes = self.extremes
    mix.silent = self.silent
    mix.nonfinite = self.nonfinite
    return mix
  }

  func validate() throws {
    let shares = [
      self.gaps, self.overflows, self.wildcards, self.merged, self.diffs, self.geocodes,
      self.platformEvents, self.large, self.nulls, self.exotic, self.extremes, self.silent,
      self.nonfinite,
    ]
    guard shares.allSatisfy({ (0...1).contains($0) }) else {
      throw ValidationError("shares must be 0 to 1")
    }
  }
}
