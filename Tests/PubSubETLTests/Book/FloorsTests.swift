import FoundationEssentials
import Testing

/// The picture of targets on the page Architecture, against `Package.swift` and the folders.
@Suite("The floors of the book")
struct FloorsTests {
  /// The floors of the picture, the lowest first, with their targets.
  private static func floors() throws -> [(name: String, targets: [String])] {
    let page = try RepositoryPages.text("\(RepositoryPages.book)/Architecture.md")
    let picture = page.split(separator: "```\n").dropFirst().first ?? ""
    return picture.split(separator: "\n").map { line in
      let words = line.split(separator: /[^A-Za-z0-9]+/).map(String.init)
      var targets: [String] = []
      for word in words.dropFirst()
      where word.first?.isUppercase == true && !targets.contains(word) {
        targets.append(word)
      }
      return (words[0], targets)
    }.reversed()
  }

  /// Targets of the manifest but tests, with their floor and the targets that they name.
  private static func targets() throws -> [String: (floor: String, dependencies: [String])] {
    let manifest = try RepositoryPages.text("Package.swift")
    let end = try #require(manifest.firstRange(of: "// MARK: Tests")?.lowerBound)
    let begin = try #require(manifest.firstRange(of: "  targets: [")?.upperBound)
    var targets: [String: (floor: String, dependencies: [String])] = [:]
    let declarations = manifest[begin..<end].split(
      separator: /\n    (?:\.systemLibrary|\.executableTarget|\.target|target)\(/)
    for declaration in declarations.dropFirst() {
      let code = declaration.split(separator: "\n").filter {
        !$0.drop { $0 == " " }.hasPrefix("//")
      }.joined(separator: "\n")
      let names = code.matches(of: /"([A-Z][A-Za-z0-9]*)"/).map { String($0.output.1) }
      let name = try #require(names.first)
      let floor = try #require(
        code.firstMatch(of: /in: \.([a-z]+)/)?.output.1
          ?? code.firstMatch(of: /path: "Sources\/([A-Za-z]+)\//)?.output.1)
      targets[name] = (floor.capitalized, Array(names.dropFirst()).filter { $0 != "Protos" })
    }
    return targets
  }

  @Test("Each target is in the folder of its floor, and depends on no floor above it")
  func floors() throws {
    let floors = try Self.floors()
    let targets = try Self.targets()
    #expect(targets.count > 30)
    let order = floors.map(\.name)
    for (name, target) in targets {
      let floor = try #require(order.firstIndex(of: target.floor), "\(target.floor): no floor")
      #expect(floors[floor].targets.contains(name), "\(name) is not on the floor \(target.floor)")
      for dependency in target.dependencies {
        let below = try #require(targets[dependency], "\(dependency) is not a target").floor
        let place = try #require(order.firstIndex(of: below))
        #expect(place <= floor, "\(name) (\(target.floor)) depends on \(dependency) (\(below))")
        #expect(
          below != "Simulator" || target.floor == "Simulator",
          "\(name) depends on \(dependency) of the simulator")
        #expect(
          target.floor != "Simulator" || name == "RehearsedExporter"
            || !["Pipeline", "Connectors", "Program"].contains(below),
          "\(name) of the simulator depends on \(dependency)")
      }
    }
    let folders = try FileManager.default.contentsOfDirectory(
      atPath: RepositoryPages.root.appending(path: "Sources").path)
    #expect(folders.sorted() == order.sorted())
    for floor in floors {
      let folders = try FileManager.default.contentsOfDirectory(
        atPath: RepositoryPages.root.appending(path: "Sources/\(floor.name)").path)
      #expect(folders.sorted() == floor.targets.sorted(), "folders of \(floor.name)")
    }
  }
}
