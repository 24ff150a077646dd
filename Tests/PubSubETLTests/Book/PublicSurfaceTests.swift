import Testing

/// What other packages see of the library products.
@Suite("The public surface of the libraries")
struct PublicSurfaceTests {
  /// Targets that a product of `Package.swift` gives to other packages.
  private static func targets() throws -> [String] {
    let manifest = try RepositoryPages.text("Package.swift")
    return manifest.matches(of: /\.library\(name: "[A-Za-z0-9]+", targets: \[([^\]]*)\]\)/)
      .flatMap { $0.output.1.matches(of: /"([A-Za-z0-9]+)"/).map { String($0.output.1) } }
  }

  /// Declarations whose documentation is that of the protocol.
  private static let inherited: Set<Substring> = [
    "description", "debugDescription", "customMirror", "hash", "rawValue",
  ]

  @Test("Every public declaration has a documentation comment")
  func documented() throws {
    let targets = try Self.targets()
    #expect(Set(targets) == ["SalesforcePubSub", "PubSubAPI", "Avro", "HTTP2Transport"])
    var count = 0
    for file in try RepositoryPages.files(
      in: try targets.map(RepositoryPages.folder), suffixes: [".swift"])
    {
      let surface = PublicSurface(of: try RepositoryPages.text(file))
      count += surface.declarations.count
      for declaration in surface.declarations
      where !declaration.isDocumented && !Self.inherited.contains(declaration.name) {
        Issue.record("\(file):\(declaration.line): \(declaration.text)")
      }
    }
    #expect(count > 200)
  }

  @Test("The scan finds public declarations, also members of protocols and cases of enums")
  func scan() {
    let surface = PublicSurface(
      of: """
        /// Documented.
        public struct A {
          public var b: Int
          var c: Int
          /// Documented.
          @inlinable
          public func d() {}
          package func e() {}
        }
        public enum F {
          case g, h
        }
        enum I {
          case j
        }
        public protocol K {
          func l()
        }
        public extension A {
          func m() {}
        }
        """)
    let names = surface.declarations.map(\.name)
    #expect(names == ["A", "b", "d", "F", "g", "K", "l"])
    #expect(surface.declarations.filter(\.isDocumented).map(\.name) == ["A", "d"])
    #expect(surface.hasPublicExtensions)
  }

  @Test("Nothing is public but in the libraries and in targets whose types they show")
  func nothingElse() throws {
    let libraries = try Self.targets()
    var shown = Set(libraries)
    for file in try RepositoryPages.files(
      in: try libraries.map(RepositoryPages.folder), suffixes: [".swift"])
    {
      let text = try RepositoryPages.text(file)
      shown.formUnion(text.matches(of: /(?m)^public import (\w+)/).map { String($0.output.1) })
    }
    for file in try RepositoryPages.files(in: ["Sources"], suffixes: [".swift"])
    where !shown.contains(String(file.split(separator: "/")[2])) {
      let text = try RepositoryPages.text(file)
      guard text.contains("public ") else { continue }
      for declaration in PublicSurface(of: text).declarations {
        Issue.record("\(file):\(declaration.line): \(declaration.text)")
      }
    }
  }

  @Test("No extension is public as a whole, because the scan would miss its members")
  func extensions() throws {
    for file in try RepositoryPages.files(
      in: try Self.targets().map(RepositoryPages.folder), suffixes: [".swift"])
    {
      #expect(!PublicSurface(of: try RepositoryPages.text(file)).hasPublicExtensions, "\(file)")
    }
  }

  /// The compiler accepts `@inlinable` on a member of a `package` type without a warning. It then calls
  /// the member from other modules, and does not specialize it if it is generic.
  @Test("A type with members to be inlined is visible to inlined code")
  func inlinable() throws {
    /// By name, as in `RecordBatch.Row`: the declarations of types that only the package sees.
    var hidden: [String: String] = [:]
    var users: [(type: String, place: String)] = []
    for file in try RepositoryPages.files(in: ["Sources"], suffixes: [".swift"]) {
      var scopes: [(name: String, indentation: Int)] = []
      let lines = try RepositoryPages.text(file).split(
        separator: "\n", omittingEmptySubsequences: false)
      for (index, line) in lines.enumerated() {
        let indentation = line.prefix { $0 == " " }.count
        if line.dropFirst(indentation).hasPrefix("}") {
          scopes.removeAll { $0.indentation >= indentation }
        }
        if let type = line.firstMatch(
          of: /^ *((?:@\w+ |\w+ )*)(?:struct|class|enum|extension) ([\w.]+).*\{$/)
        {
          let name = ((scopes.last.map { [$0.name] } ?? []) + [String(type.output.2)])
            .joined(separator: ".")
          scopes.append((name, indentation))
          if type.output.1.contains("package "), !type.output.1.contains("@usableFromInline ") {
            hidden[name] = "\(file):\(index + 1)"
          }
        }
        guard line.contains("@inlinable") else { continue }
        users += scopes.filter { $0.indentation < indentation }.map {
          ($0.name, "\(file):\(index + 1)")
        }
      }
    }
    #expect(users.contains { $0.type == "ByteBuffer" })
    for (type, place) in users {
      if let declaration = hidden[type] {
        Issue.record("\(place) is never inlined: \(type) at \(declaration) needs @usableFromInline")
      }
    }
  }
}

/// The public declarations of a source file, as far as its lines tell.
struct PublicSurface {
  struct Declaration {
    var line: Int
    var text: Substring
    var name: Substring
    var isDocumented: Bool
  }

  private(set) var declarations: [Declaration] = []
  private(set) var hasPublicExtensions = false

  init(of source: String) {
    /// Types that the line is in, with their indentation.
    var scopes: [(kind: Substring, indentation: Int)] = []
    var isDocumented = false
    let lines = source.split(separator: "\n", omittingEmptySubsequences: false)
    for (index, line) in lines.enumerated() {
      let text = line.drop { $0 == " " }
      let indentation = line.count - text.count
      if text.hasPrefix("///") {
        isDocumented = true
        continue
      }
      // Attributes on lines of their own stand between the docstring and the declaration.
      if text.hasPrefix("@"), !text.contains("public ") { continue }
      if text.hasPrefix("}") { scopes.removeAll { $0.indentation >= indentation } }
      if text.contains(/^public extension\b/) { self.hasPublicExtensions = true }
      let scope = scopes.last.flatMap { $0.indentation + 2 == indentation ? $0.kind : nil }
      if Self.isPublic(text, in: scope) {
        let name = text.firstMatch(
          of: /\b(?:var|let|func|case|struct|class|enum|protocol|typealias|actor) ([\w]+)/)
        self.declarations.append(
          Declaration(
            line: index + 1, text: text, name: name?.output.1 ?? text,
            isDocumented: isDocumented))
      }
      if let type = text.firstMatch(
        of: /^(?:@\w+ )*(.*?)\b(struct|class|enum|protocol|extension|actor) .*\{$/)
      {
        // Members of types that are not public are not public either.
        let isOpen = type.output.1.contains("public ")
        scopes.append((isOpen ? type.output.2 : "", indentation))
      }
      if !text.isEmpty { isDocumented = false }
    }
  }

  private static func isPublic(_ text: Substring, in scope: Substring?) -> Bool {
    if text.contains(/^(?:@\w+(?:\([^)]*\))? )*public (?!import|extension)/) { return true }
    switch scope {
    case "enum": return text.hasPrefix("case ")
    case "protocol":
      return text.contains(/^(?:mutating |static )*(?:func|var|init|associatedtype|subscript)\b/)
    default: return false
    }
  }
}
