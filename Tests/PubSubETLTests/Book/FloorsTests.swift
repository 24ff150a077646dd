import Testing

/// The picture of targets on the page Architecture, against `Package.swift`.
@Suite("The floors of the book")
struct FloorsTests {
  /// Floor of each target, from the picture.
  private static func floors() throws -> [String: Int] {
    let page = try RepositoryPages.text("\(RepositoryPages.book)/Architecture.md")
    var floors: [String: Int] = [:]
    for line in page.split(separator: "\n") {
      guard let match = line.wholeMatch(of: /([0-6])  (.+)/), let floor = Int(match.output.1)
      else { continue }
      for name in match.output.2.split(separator: /[^A-Za-z0-9]+/) where floors[String(name)] == nil
      {
        floors[String(name)] = floor
      }
    }
    return floors
  }

  /// Targets of the manifest but tests, with the targets that they name.
  private static func targets() throws -> [String: [String]] {
    let manifest = try RepositoryPages.text("Package.swift")
    let end = try #require(manifest.firstRange(of: "// Tests.")?.lowerBound)
    let begin = try #require(manifest.firstRange(of: "  targets: [")?.upperBound)
    var targets: [String: [String]] = [:]
    let declarations = manifest[begin..<end].split(
      separator: /\n    (?:\.systemLibrary|\.executableTarget|\.target|target)\(/)
    for declaration in declarations.dropFirst() {
      let code = declaration.split(separator: "\n").filter {
        !$0.drop { $0 == " " }.hasPrefix("//")
      }.joined(separator: "\n")
      let names = code.matches(of: /"([A-Z][A-Za-z0-9]*)"/).map { String($0.output.1) }
      let name = try #require(names.first)
      targets[name] = Array(names.dropFirst()).filter { $0 != "Protos" }
    }
    return targets
  }

  @Test("Each target is on one floor, and depends on none above it")
  func floors() throws {
    let floors = try Self.floors()
    let targets = try Self.targets()
    #expect(targets.count > 30)
    for (name, dependencies) in targets {
      let floor = try #require(floors[name], "\(name) is on no floor")
      for dependency in dependencies {
        let below = try #require(floors[dependency], "\(dependency) is on no floor")
        #expect(below <= floor, "\(name) (\(floor)) depends on \(dependency) (\(below))")
      }
    }
    for name in floors.keys where !["pubsub", "etl", "simulator"].contains(name) {
      #expect(targets[name] != nil, "\(name) is not a target")
    }
  }
}
