import DurableFiles
import JSON
import TestSupport
import Testing

@testable import FileSink

@Suite("Record of an exchange of folders")
struct FolderSwitchTests {
  private static let folder = "Opportunity/commit_date=2026-02-17"
  private static let path = "/out/.opps.compact.json"
  private let fileSystem = ModelFileSystem()

  private static func line(_ name: String, replacing names: [String]) -> JSONValue {
    ["name": .string(name), "replaces": .array(names.map { .string($0) })]
  }

  private static let good = FolderSwitch(
    folder: folder,
    lines: [
      line(
        "\(folder)/opps-T-e1-000000000000-s0-r1-000000000000.ndjson.zst",
        replacing: [
          "\(folder)/opps-T-e1-000000000000.ndjson.zst",
          "\(folder)/opps-T-e1-000000000001.ndjson.zst",
        ])
    ])

  private func read() throws(FileSinkError) -> FolderSwitch? {
    try FolderSwitch.read(in: "/out", pipeline: "opps", on: self.fileSystem)
  }

  @Test("A record is read as it was stored; none means that nothing is in progress")
  func stored() throws {
    #expect(try self.read() == nil)
    _ = try self.fileSystem.makeDirectory("/out")
    try Self.good.store(in: "/out", pipeline: "opps", on: self.fileSystem)
    #expect(try self.read() == Self.good)
    #expect(self.fileSystem.files.keys.sorted() == [Self.path])
    #expect(
      FolderSwitch.staging(of: Self.folder, pipeline: "opps")
        == "Opportunity/.opps.compact/commit_date=2026-02-17")
  }

  private static let damaged: [JSONValue] = [
    [:], ["folder": .string(folder), "files": []], ["folder": "Opportunity", "files": [1]],
    ["folder": "../../etc", "files": .array(good.lines)],
    ["folder": "Opportunity/../x", "files": .array(good.lines)],
    ["folder": "Opportunity/.hidden", "files": .array(good.lines)],
    ["folder": "Opportunity/commit_date=2026-02-18", "files": .array(good.lines)],
    FolderSwitch(
      folder: folder,
      lines: [line("\(folder)/../passwd", replacing: good.replaced)]
    ).json,
    FolderSwitch(folder: folder, lines: [line(good.names[0], replacing: [])]).json,
    FolderSwitch(folder: folder, lines: [line(good.names[0], replacing: ["/etc/passwd"])]).json,
    FolderSwitch(
      folder: folder,
      lines: [line(good.names[0], replacing: ["\(folder)/other-T-e1-000000000000.ndjson.zst"])]
    ).json,
    FolderSwitch(
      folder: folder, lines: [line(good.names[0], replacing: ["\(folder)/x/\u{301}a"])]
    ).json,
  ]

  @Test("A record that this program does not write is refused", arguments: Self.damaged)
  func hostile(json: JSONValue) throws {
    self.fileSystem.put(Self.path, Array(json.text().utf8))
    let error = #expect(throws: FileSinkError.self) { try self.read() }
    #expect(error?.code == .inconsistent)
    #expect(error?.message.contains(Self.path) == true)
  }

  @Test("A record that is cut anywhere is refused")
  func cut() throws {
    let text = Array((Self.good.json.text() + "\n").utf8)
    for count in 0..<text.count - 1 {
      self.fileSystem.put(Self.path, Array(text[..<count]))
      #expect(throws: FileSinkError.self, "\(count) bytes") { try self.read() }
    }
  }

  @Test("The exchange is made once the old files are hidden, even if a loader took the new ones")
  func made() throws {
    let staging = "/out/Opportunity/.opps.compact/commit_date=2026-02-17"
    func isMade() throws -> Bool {
      try Self.good.isMade(in: "/out", pipeline: "opps", on: self.fileSystem)
    }
    let new = Self.good.names[0].split(separator: "/").last ?? ""
    self.fileSystem.put("\(staging)/\(new)", [1])
    for name in Self.good.replaced { self.fileSystem.put("/out/\(name)", [1]) }
    #expect(try !isMade())
    // Somebody removed the hidden folder.
    self.fileSystem.delete("\(staging)/\(new)")
    #expect(try !isMade())
    for name in Self.good.replaced { self.fileSystem.delete("/out/\(name)") }
    #expect(try isMade())
    self.fileSystem.put("/out/\(Self.good.names[0])", [1])
    #expect(try isMade())
  }
}
