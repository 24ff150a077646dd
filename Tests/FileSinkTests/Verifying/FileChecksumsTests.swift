import Foundation
import JSON
import TestSupport
import Testing

@testable import FileSink

/// Finished files against their manifest.
@Suite("Checksums of files") struct FileChecksumsTests {
  private let directory = try! TemporaryDirectory()  // A machine without /tmp runs no tests.

  private func checksums(
    ignoringMissing: Bool = false, inProgress: Set<String> = []
  ) throws -> FileChecksums {
    try FileChecksums.read(
      in: self.directory.path, pipeline: RandomStream.pipeline, inProgress: inProgress,
      ignoringMissing: ignoringMissing)
  }

  /// Relative names of files, sorted.
  private func writeFiles() throws -> [String] {
    var stream = RandomStream(seed: 5)
    try stream.write(to: self.directory.path, fileCount: 6)
    return try Decompression.files(below: self.directory.path).filter { $0.hasSuffix(".zst") }
      .map { String($0.dropFirst(self.directory.path.count + 1)) }
  }

  @Test("Unchanged files are equal, and so is a directory without files")
  func equal() throws {
    #expect(try self.checksums() == FileChecksums())
    let names = try self.writeFiles()
    let found = try self.checksums()
    #expect(found.fileCount == names.count && found.faultCount == 0 && found.lineCount > 0)
  }

  @Test(
    "Each kind of damage is reported by name",
    arguments: ["cut", "flipped", "longer", "removed", "lines"])
  func damage(kind: String) throws {
    let names = try self.writeFiles()
    let path = "\(self.directory.path)/\(names[2])"
    var content = try Decompression.read(path)
    switch kind {
    case "cut": content.removeLast()
    case "flipped": content[content.count / 2] ^= 1
    case "longer": content.append(0)
    default: break
    }
    try Data(content).write(to: URL(fileURLWithPath: path))
    let manifest = "\(self.directory.path)/_manifest.ndjson"
    if kind == "removed" { try FileManager.default.removeItem(atPath: path) }
    if kind == "lines" {
      let lines = try String(contentsOfFile: manifest, encoding: .utf8).split(separator: "\n")
      let changed = lines.map { line in
        line.contains(names[2])
          ? String(line.replacing(/"lines":\d+/, with: "\"lines\":99")) : String(line)
      }
      try (changed.joined(separator: "\n") + "\n").write(
        toFile: manifest, atomically: false, encoding: .utf8)
    }
    let found = try self.checksums()
    #expect(found.faults.map(\.file) == [names[2]] && found.faultCount == 1)
    #expect(found.fileCount == names.count - 1)
    let ignoring = try self.checksums(ignoringMissing: true)
    #expect(ignoring.faultCount == (kind == "removed" ? 0 : 1))
    #expect(ignoring.takenCount == (kind == "removed" ? 1 : 0))
  }

  @Test("A file without a manifest line is named, unless the checkpoint or another pipeline has it")
  func unknown() throws {
    let names = try self.writeFiles()
    let copy = names[0].replacing(/-e\d+-.*/, with: "-e9-000000000777.ndjson.zst")
    let other = copy.replacing("/opps-", with: "/others-")
    for name in [copy, other] {
      try FileManager.default.copyItem(
        atPath: "\(self.directory.path)/\(names[0])", toPath: "\(self.directory.path)/\(name)")
    }
    #expect(try self.checksums().faults.map(\.file) == [copy])
    #expect(try self.checksums(inProgress: [copy]).faultCount == 0)
  }
}
