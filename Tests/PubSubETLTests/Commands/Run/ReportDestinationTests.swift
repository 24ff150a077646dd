import Glibc
import JSON
import TestSupport
import Testing

@testable import PubSubETL

@Suite("Report destination")
struct ReportDestinationTests {
  private let directory: TemporaryDirectory

  init() throws { self.directory = try TemporaryDirectory() }

  private func path(_ name: String) -> String { "\(self.directory.path)/\(name)" }

  private func write(_ text: String, to path: String) throws {
    try ReportDestination(path).write(PrintableText(line: text, hiding: SecretMask()))
  }

  private func content(_ name: String) throws -> String {
    String(decoding: try TextFile.read(self.path(name)), as: UTF8.self)
  }

  private func names() throws -> [String] {
    guard let listing = opendir(self.directory.path) else { return [] }
    defer { closedir(listing) }
    var names: [String] = []
    while let entry = readdir(listing) {
      names.append(
        withUnsafePointer(to: &entry.pointee.d_name) {
          $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        })
    }
    return names.filter { $0 != "." && $0 != ".." }.sorted()
  }

  @Test("A report replaces no file that the pipeline reads, and none of its state or output")
  func conflicts() throws {
    let sample = try SamplePipeline()
    try sample.write(
      #"{"auth": {"type": "client_credentials", "login_url": "https://acme.my.salesforce.com", "client_id": "id", "client_secret": "${file:secret}"}, "tls": {"ca_file": ""}}"#,
      to: "org.json")
    try sample.write("s3cret", to: "secret")
    let configuration = try sample.load(sets: ["source.org=org.json"])
    for directory in ["state", "state/schemas", "out", "out/Opportunity", "state/dead"] {
      mkdir("\(sample.base)/\(directory)", 0o750)
    }
    symlink("\(sample.base)/state", "\(sample.base)/link")
    func check(_ path: String) throws(ReportDestination.Failure) {
      try ReportDestination("\(sample.base)/\(path)").check(against: configuration)
    }
    for path in [
      "pipeline.json", "org.json", "secret", "state/../pipeline.json",
      "state/opps.checkpoint.json", "state/other.checkpoint.json", "state/opps.lock",
      "state/opps.last-run.json", "state/opps.identity", "state/opps.journal.ndjson",
      "state/opps.runs.ndjson",
      "link/opps.checkpoint.json", "state/schemas/report.json", "out/_manifest.ndjson",
      "out/Opportunity/_columns.json", "out/Opportunity/x.ndjson.zst",
      "state/dead/_manifest.ndjson",
    ] {
      let failure = #expect(throws: ReportDestination.Failure.self) { try check(path) }
      #expect(failure?.description.contains("name another file") == true, "\(path)")
    }
    for path in ["report.json", "state/report.json", "out/report.json"] { try check(path) }
  }

  @Test("A report replaces an earlier report or an empty file, and no other file")
  func otherFiles() throws {
    let sample = try SamplePipeline()
    let configuration = try sample.load()
    let report = RunReport(
      pipeline: "other", file: "other.json", startedAt: 1, finishedAt: 2,
      exitCode: .success, reason: "caught_up")
    try sample.write(
      PrintableText(json: report.json, hiding: SecretMask()).text, to: "earlier.json")
    try sample.write("", to: "empty")
    for path in ["earlier.json", "empty", "missing.json"] {
      try ReportDestination("\(sample.base)/\(path)").check(against: configuration)
    }
    let others = [
      "other.json": #"{"version": 1, "name": "other", "sinks": []}"#,
      "_manifest.ndjson": "{\"name\": \"x\"}\n{\"name\": \"y\"}\n",
      "env": "export SF_CLIENT_SECRET='s'\n",
      "other.lock": "", ".catalog.lock": "",
      "other.last-run.json": #"{"pid": 1, "report": \#(report.json.text(.compact))}"#,
    ]
    for (name, text) in others {
      try sample.write(text, to: name)
      let path = "\(sample.base)/\(name)"
      let failure = #expect(throws: ReportDestination.Failure.self) {
        try ReportDestination(path).check(against: configuration)
      }
      #expect(failure?.description.contains("\(path), because it exists") == true, "\(name)")
      #expect(String(decoding: try TextFile.read(path), as: UTF8.self) == text)
    }
  }

  @Test("A report file is created, then replaced as a whole, and no other file remains")
  func file() throws {
    try self.write("a", to: self.path("report"))
    let old = open(self.path("report"), O_RDONLY)
    defer { close(old) }
    try self.write("b", to: self.path("report"))
    #expect(try self.content("report") == "b\n")
    var kept = [UInt8](repeating: 0, count: 8)
    #expect(read(old, &kept, 8) == 2)
    #expect(kept[0] == UInt8(ascii: "a"))
    #expect(try self.names() == ["report"])
  }

  @Test("Standard output is recognized by each of its names")
  func standardOutput() throws {
    for name in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
      #expect(try ReportDestination(name).isStandardOutput, "\(name)")
    }
    for name in ["/dev/stderr", self.path("report")] {
      #expect(try !ReportDestination(name).isStandardOutput, "\(name)")
    }
  }

  @Test("A symbolic link is refused, and its target stays unchanged")
  func link() throws {
    try self.write("precious", to: self.path("victim"))
    #expect(symlink(self.path("victim"), self.path("report")) == 0)
    #expect(symlink(self.path("nowhere"), self.path("dangling")) == 0)
    for name in ["report", "dangling"] {
      let error = #expect(throws: ReportDestination.Failure.self) {
        try self.write("b", to: self.path(name))
      }
      #expect(error?.description.contains("symbolic link") == true)
    }
    #expect(try self.content("victim") == "precious\n")
    #expect(try self.names() == ["dangling", "report", "victim"])
  }

  @Test("A symbolic link created after the check is replaced, not followed")
  func plantedLater() throws {
    try self.write("precious", to: self.path("victim"))
    let destination = try ReportDestination(self.path("report"))
    #expect(symlink(self.path("victim"), self.path("report")) == 0)
    try destination.write(PrintableText(line: "b", hiding: SecretMask()))
    #expect(try self.content("victim") == "precious\n")
    #expect(try self.content("report") == "b\n")
  }

  @Test("A symbolic link under a predictable temporary name is not used")
  func predictableName() throws {
    try self.write("precious", to: self.path("victim"))
    let planted = self.path("report.\(getpid()).tmp")
    #expect(symlink(self.path("victim"), planted) == 0)
    try self.write("b", to: self.path("report"))
    #expect(try self.content("victim") == "precious\n")
  }

  @Test("Special files are written in place and stay special")
  func special() throws {
    try self.write("x", to: "/dev/null")
    var status = stat()
    #expect(stat("/dev/null", &status) == 0 && status.st_mode & S_IFMT == S_IFCHR)

    #expect(mkfifo(self.path("fifo"), 0o600) == 0)
    let error = #expect(throws: ReportDestination.Failure.self) {
      try self.write("x", to: self.path("fifo"))
    }
    #expect(error?.description.hasSuffix("no program is reading from it") == true)
    let reader = open(self.path("fifo"), O_RDONLY | O_NONBLOCK)
    defer { close(reader) }
    try self.write("through", to: self.path("fifo"))
    var bytes = [UInt8](repeating: 0, count: 16)
    let count = read(reader, &bytes, 16)
    #expect(String(decoding: bytes.prefix(max(0, count)), as: UTF8.self) == "through\n")
    #expect(lstat(self.path("fifo"), &status) == 0 && status.st_mode & S_IFMT == S_IFIFO)
  }

  @Test(
    "A report goes to the descriptor, not to the target of its name",
    arguments: ["/dev/fd/", "/proc/self/fd/"])
  func descriptor(directory: String) throws {
    var ends: [Int32] = [0, 0]
    #expect(pipe(&ends) == 0)
    defer { for end in ends { close(end) } }
    try self.write("through", to: "\(directory)\(ends[1])")
    var bytes = [UInt8](repeating: 0, count: 16)
    let count = read(ends[0], &bytes, 16)
    #expect(String(decoding: bytes.prefix(max(0, count)), as: UTF8.self) == "through\n")
    #expect(try ReportDestination("/dev/stdout") == .descriptor(1))
    #expect(throws: ReportDestination.Failure.self) { try ReportDestination("\(directory)999") }
  }

  @Test("A destination that cannot be written is reported before the run")
  func beforehand() {
    for (name, reason) in [("none/report.json", "No such file"), ("", "Is a directory")] {
      let error = #expect(throws: ReportDestination.Failure.self) {
        try ReportDestination(self.path(name))
      }
      #expect(error?.description.contains(reason) == true)
    }
  }
}
