import ArgumentParser
import DurableFiles
import JSON

/// `pubsub-etl test [FILES]`: golden cases beside pipeline files.
struct TestCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "test",
    abstract: "Runs the test cases stored next to pipeline files. Needs no org, stores nothing.",
    discussion: """
      opps.test.json, next to opps.json, holds cases: events in JSON by their Avro schema, and the \
      lines that each sink is expected to write. The events pass the decoder, the stages and the \
      encoders that a run has. Variables of the pipeline file come from "environment" in the test \
      file, never from the process.
      Exit codes: 0 every case passed; 1 a case did not; 64 command line, or mistakes in a test \
      file; 74 a file or standard output cannot be written; 78 mistakes in a pipeline file.

      EXAMPLES:
        pubsub-etl test opps.json             run the cases in opps.test.json
        pubsub-etl test opps.json --update    write what came out into the file
      """)

  @Argument(
    help: ArgumentHelp(
      "Pipeline files, test files, or directories with test files; default: the working directory "
        + "and pipelines/ in it.", valueName: "files"), completion: .file())
  var files: [String] = []

  @Flag(
    help:
      "Write the resulting lines into the test files; everything else in them stays unchanged."
  )
  var update = false

  func run() throws {
    let files = try self.testFiles()
    var mistakes: ExitCode?
    var hasFailed = false
    for name in files {
      do {
        hasFailed = try !self.test(name) || hasFailed
      } catch let error as PipelineTestError {
        StandardStream.tell(ConfigurationError(mistakes: error.mistakes).printable)
        mistakes = mistakes ?? .usage
      } catch let error as ConfigurationError {
        StandardStream.tell(error.printable)
        mistakes = mistakes ?? error.exitCode
      }
    }
    if let mistakes { throw mistakes.error }
    if hasFailed { throw ExitCode.difference.error }
  }

  /// - Returns: whether every case has passed.
  private func test(_ name: String) throws -> Bool {
    let file = try PipelineTestFile.load(
      FilePath.resolve(name, base: FilePath.workingDirectory))
    let secrets = file.configuration.secrets
    do {
      for attention in try file.checkColumns() {
        StandardStream.tell(
          PrintableText(line: "\(name): attention: \(attention)", hiding: secrets))
      }
    } catch {
      throw RunFailure(error).reported(hiding: secrets)
    }
    let run = PipelineTestRun(
      configuration: file.configuration, org: file.org, classification: file.classification)
    var verdicts: [PipelineTestVerdict] = []
    for test in file.cases {
      do {
        verdicts.append(PipelineTestVerdict(test, try run.outcome(of: test)))
      } catch {
        let failure = RunFailure(error)
        throw RunFailure(
          word: failure.word, code: failure.exitCode,
          "\(name):\(test.position.line): \(test.name): \(failure.message)"
        ).reported(hiding: secrets)
      }
    }
    let isStale = verdicts.contains { !$0.hasPassed || $0.test.expected == nil }
    if self.update, isStale { return try self.write(file, verdicts, name: name) }
    let report = PipelineTestReport(
      file: file, name: name, isColored: StandardStream.output.isTerminal)
    for line in report.text(verdicts) {
      try StandardStream.print(line)
    }
    return verdicts.allSatisfy(\.hasPassed)
  }

  private func write(
    _ file: PipelineTestFile, _ verdicts: [PipelineTestVerdict], name: String
  ) throws -> Bool {
    var document = file.document
    guard var members = document.members,
      let place = members.firstIndex(where: { $0.name == "cases" }),
      let cases = members[place].value.array
    else { preconditionFailure("\(file.path) was read with cases") }
    members[place].value = .array(zip(cases, verdicts).map { $1.updated($0) })
    document.content = .object(members)
    let secrets = file.configuration.secrets
    let isReplaced: Bool
    do throws(FileSystemError) {
      isReplaced = try file.replaceText(with: document)
    } catch {
      throw RunFailure(.output, "\(name) cannot be written: \(error)")
        .reported(hiding: secrets)
    }
    guard isReplaced else {
      throw RunFailure(
        .output, code: .tryAgain,
        "\(name) was edited while its cases ran, and is left as it is; run the update again"
      ).reported(hiding: secrets)
    }
    let changed = verdicts.count { !$0.hasPassed || $0.test.expected == nil }
    try StandardStream.print(
      PrintableText(line: "\(name): \(Phrase.count(changed, "case")) updated", hiding: secrets))
    return true
  }

  // MARK: Files

  private func testFiles() throws -> [String] {
    guard !self.files.isEmpty else {
      let found = self.testFiles(in: ".") + self.testFiles(in: "pipelines")
      if found.isEmpty {
        throw ValidationError(
          "there is no \(PipelineTestFile.suffix) file here or in pipelines/; name the files")
      }
      return found
    }
    return try self.files.flatMap { name in
      if name.hasSuffix(PipelineTestFile.suffix) { return [name] }
      if name.hasSuffix(".json") {
        let file = String(name.dropLast(".json".count)) + PipelineTestFile.suffix
        guard FilePath.exists(file) else {
          throw ValidationError("\(name) has no tests: \(file) does not exist")
        }
        return [file]
      }
      let found = self.testFiles(in: name)
      if found.isEmpty {
        throw ValidationError("\(name): there is no \(PipelineTestFile.suffix) file in it")
      }
      return found
    }
  }

  private func testFiles(in directory: String) -> [String] {
    let names = ((try? SystemFileSystem().list(directory)) ?? nil ?? []).map(\.name)
    return names.filter { $0.hasSuffix(PipelineTestFile.suffix) }.sorted()
      .map { directory == "." ? $0 : "\(directory)/\($0)" }
  }
}
