import Cryptography
import DurableFiles
import JSON
import Pipeline
import TestSupport
import Testing

@testable import FileSink

/// Files that leave the machine when they are finished.
@Suite("Finished files") struct FinishedFilesTests {
  /// A store of objects that can be put, but neither moved nor appended to.
  private final class Bucket: FinishedFiles {
    private let disk: ModelFileSystem
    private(set) var objects: [String: [UInt8]] = [:]
    private(set) var lines: [JSONValue] = []
    /// Calls that change something, until all fail.
    var callsLeft = Int.max
    let listPath = "the bucket's list"

    init(_ disk: ModelFileSystem) { self.disk = disk }

    private func pass() throws(FileSystemError) {
      guard self.callsLeft > 0 else { throw FileSystemError("put", "bucket", code: 5) }
      self.callsLeft -= 1
    }

    func readList(visit: Manifest.Visit) {
      for line in self.lines {
        let name = Array((line["name"]?.string ?? "").utf8)
        Array(line.text(.compact).utf8).withUnsafeBufferPointer { bytes in
          name.withUnsafeBufferPointer { visit(bytes, $0) }
        }
      }
    }

    func byteCount(of name: String) -> Int? { self.objects[name]?.count }

    func isPlaced(_ part: String, as name: String) -> Bool {
      self.objects[name].map { $0 == self.disk.files[part] } ?? false
    }

    func sha256(of name: String, byteCount: Int) -> String {
      SHA256Hex.of(Array((self.objects[name] ?? []).prefix(byteCount)))
    }

    func place(_ part: String, as name: String) throws(FileSystemError) {
      try self.pass()
      self.objects[name] = self.disk.files[part]
      try self.pass()
      try self.disk.remove(part)
    }

    func synchronize(_ folder: String) throws(FileSystemError) { try self.pass() }

    func list(_ line: JSONValue, isFirst: Bool) throws(FileSystemError) {
      try self.pass()
      self.lines.append(line)
    }
  }

  private let disk = ModelFileSystem()
  private let clock = TestClock()
  private let batches = TestBatches()

  private func sink(_ bucket: Bucket) -> FileSink {
    FileSink(
      FileSinkConfiguration(
        directory: "/out", rotation: .init(maxEventCount: 2), pipeline: "opps", org: "00D",
        whenMissing: .ignore),
      fileSystem: self.disk, clock: self.clock.sinkClock, finished: bucket)
  }

  @Test(
    "Each file is placed and listed once, whichever call the run dies at", arguments: 0...12)
  func placed(calls: Int) throws {
    let bucket = Bucket(self.disk)
    var sink = self.sink(bucket)
    try sink.recover(from: nil)
    let events = (0..<5).map { TestEvent(number: $0) }
    for batch in self.batches.batches(events[...], epoch: 1) { try sink.write(batch) }
    let state = try sink.flush(finish: true)
    #expect(bucket.objects.isEmpty && bucket.lines.isEmpty)
    bucket.callsLeft = calls
    if (try? sink.committed()) == nil {
      self.disk.kill()
      bucket.callsLeft = .max
      sink = self.sink(bucket)
      try sink.recover(from: state)
    }
    #expect(Set(bucket.lines.map { $0["name"]?.string }) == Set(bucket.objects.keys))
    #expect(bucket.lines.count == bucket.objects.count && bucket.lines.count >= 3)
    for line in bucket.lines {
      let object = try #require(bucket.objects[line["name"]?.string ?? ""])
      #expect(line["sha256"]?.string == SHA256Hex.of(object))
      #expect(line["events"]?.integer == Int64(try Decompression.lines(of: object).count))
    }
    #expect(bucket.lines.reduce(0) { $0 + ($1["events"]?.integer ?? 0) } == 5)
    #expect(
      self.disk.files.keys.allSatisfy { !ModelFileSystem.isFinal($0) && !$0.hasSuffix(".part") })
  }
}
