import EventLoop
import Foundation
import Glibc
import JSON
import Testing

@testable import PubSubETL

@Suite("Messages that may not be read") struct MessageWriterTests {
  /// A pipe; what comes out of it is read to its end by a thread of its own, once asked for.
  private final class Pipe {
    let input: Int32
    private let output: Int32

    init() throws {
      var ends: [Int32] = [-1, -1]
      try #require(pipe(&ends) == 0)
      (self.output, self.input) = (ends[0], ends[1])
    }

    /// The lines that the writer leaves in the pipe, which is closed after the last one.
    func lines(of writer: MessageWriter) async -> [String] {
      let reader = FileHandle(fileDescriptor: self.output, closeOnDealloc: true)
      let input = self.input
      return await withCheckedContinuation { continuation in
        Foundation.Thread.detachNewThread {
          let text = String(decoding: reader.readDataToEndOfFile(), as: UTF8.self)
          continuation.resume(returning: text.split(separator: "\n").map(String.init))
        }
        // Reading has begun, so this ends.
        writer.drain(within: .seconds(600))
        close(input)
      }
    }
  }

  private func line(_ number: Int) -> PrintableText {
    PrintableText(
      line: "message \(number) \(String(repeating: "x", count: 90))", hiding: SecretMask())
  }

  /// The numbers of messages, and of those that were dropped.
  private func read(_ lines: [String]) -> (numbers: [Int], dropped: Int) {
    let words = lines.map { $0.split(separator: " ") }
    return (
      words.compactMap { $0[0] == "message" ? Int($0[1]) : nil },
      words.reduce(0) { $1[0] == "message" ? $0 : $0 + (Int($1[0].filter(\.isNumber)) ?? 0) }
    )
  }

  @Test("A pipe that nobody reads holds nobody up, and a line counts the dropped messages")
  func dropsAndCounts() async throws {
    let pipe = try Pipe()
    let writer = MessageWriter(to: pipe.input, maxByteCount: 10_000)
    let count = 20_000
    for number in 0..<count { writer.write(self.line(number)) }
    #expect(!writer.drain(within: .zero))
    let lines = await pipe.lines(of: writer)
    let (numbers, dropped) = self.read(lines)
    #expect(numbers == numbers.sorted())
    #expect(numbers.first == 0)
    #expect(dropped > 0)
    #expect(numbers.count + dropped == count)
    #expect(lines.last?.hasSuffix("messages dropped: nobody was reading them") == true)
  }

  @Test("A reader that comes late gets every message that there was room for, in order")
  func keepsOrder() async throws {
    let pipe = try Pipe()
    let writer = MessageWriter(to: pipe.input, maxByteCount: 1 << 20)
    for number in 0..<2000 { writer.write(self.line(number)) }
    let (numbers, dropped) = self.read(await pipe.lines(of: writer))
    #expect(numbers == Array(0..<2000))
    #expect(dropped == 0)
  }

  @Test("A non-blocking pipe that is full loses no message")
  func waitsForRoom() async throws {
    let pipe = try Pipe()
    try #require(fcntl(pipe.input, F_SETFL, O_NONBLOCK) == 0)
    let writer = MessageWriter(to: pipe.input, maxByteCount: 1 << 20)
    for number in 0..<2000 { writer.write(self.line(number)) }
    let (numbers, dropped) = self.read(await pipe.lines(of: writer))
    #expect(numbers == Array(0..<2000))
    #expect(dropped == 0)
  }

  @Test("A progress line is left out uncounted while messages wait")
  func leavesOutProgress() async throws {
    let pipe = try Pipe()
    let writer = MessageWriter(to: pipe.input, maxByteCount: 1 << 20)
    for number in 0..<2000 { writer.write(self.line(number)) }
    #expect(!writer.drain(within: .zero))
    writer.write(PrintableText(line: "progress", hiding: SecretMask()), isPassing: true)
    writer.write(self.line(2000))
    let lines = await pipe.lines(of: writer)
    #expect(!lines.contains("progress"))
    #expect(self.read(lines).numbers == Array(0...2000))
  }

  /// libdispatch waits by the wall clock: after it was set back, a wait for the last messages ended at once.
  @Test("No wait has a limit by the wall clock, which may be set meanwhile")
  func waitsByMonotonicClocks() throws {
    let sources = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Sources")
    let paths = try FileManager.default.subpathsOfDirectory(atPath: sources.path)
    let files = paths.filter { $0.hasSuffix(".swift") || $0.hasSuffix(".c") }
    #expect(files.contains("Program/PubSubETL/Output/MessageWriter.swift"))
    let waits = [
      "wait(timeout", "DispatchTime", "DispatchWallTime", "asyncAfter", "cond_timedwait",
      "sem_timedwait",
    ]
    for file in files {
      let text = String(
        decoding: try Data(contentsOf: sources.appending(path: file)), as: UTF8.self)
      for wait in waits { #expect(!text.contains(wait), "\(file): \(wait)") }
    }
  }

  @Test("A message to a closed pipe is reported as not written")
  func reportsClosedPipe() throws {
    EventLoop.ignoreBrokenPipes()
    var ends: [Int32] = [-1, -1]
    try #require(pipe(&ends) == 0)
    close(ends[0])
    let writer = MessageWriter(to: ends[1])
    writer.write(self.line(0))
    #expect(!writer.drain(within: .seconds(600)))
  }

  @Test("A report that nobody reads fails after its patience instead of waiting for ever")
  func boundsReports() throws {
    var ends: [Int32] = [-1, -1]
    try #require(pipe(&ends) == 0)
    defer { for end in ends { close(end) } }
    let text = PrintableText(
      json: .string(String(repeating: "x", count: 1 << 20)), hiding: SecretMask())
    #expect(text.write(to: ends[1], patience: .milliseconds(1)) == ETIMEDOUT)
  }
}
