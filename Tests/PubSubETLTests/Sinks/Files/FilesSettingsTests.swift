import Glibc
import Testing

@testable import PubSubETL

@Suite("Sink files in a pipeline file")
struct FilesSettingsTests {
  @Test("Two sinks in one directory are refused, however they name it")
  func sameDirectory() throws {
    let sample = try SamplePipeline()
    #expect(mkdir("\(sample.base)/out", 0o755) == 0)
    #expect(symlink("out", "\(sample.base)/link") == 0)
    for second in ["out", "./out/", "link", "\(sample.base)/link/../out"] {
      let mistakes = try sample.mistakes(sets: [
        #"sinks=[{"type":"files","directory":"out"},"#
          + #"{"type":"files","name":"b","directory":"\#(second)"}]"#
      ])
      #expect(mistakes.count == 1, "\(second)")
      #expect(mistakes.first?.contains("another sink writes to") == true, "\(second)")
    }
    #expect(
      try sample.mistakes(sets: [
        #"sinks=[{"type":"files","directory":"out"},{"type":"files","name":"b","directory":"b"}]"#
      ]).isEmpty)
  }
}
