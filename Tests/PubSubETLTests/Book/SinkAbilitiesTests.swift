import FileSink
import Pipeline
import PostgresSink
import Testing

@testable import PubSubETL

/// The tables of abilities on the page WritingASink.
@Suite("Book: abilities of sinks")
struct SinkAbilitiesTests {
  private static let ofSinks: [String: @Sendable (Any.Type) -> Bool] = [
    "BufferingSink": { $0 is any BufferingSink.Type },
    "MeasuredSink": { $0 is any MeasuredSink.Type },
    "RecordReceiver": { $0 is any RecordReceiver.Type },
    "SurveyedSink": { $0 is any SurveyedSink.Type },
    "DescribedSink": { $0 is any DescribedSink.Type },
    "PositionKeepingSink": { $0 is any PositionKeepingSink.Type },
    "TableStore": { $0 is any TableStore.Type },
    "LeasedStore": { $0 is any LeasedStore.Type },
    "RepairingStore": { $0 is any RepairingStore.Type },
    "CopyStore": { $0 is any CopyStore.Type },
  ]

  private static let ofSettings: [String: @Sendable (Any.Type) -> Bool] = [
    "ExclusiveSink": { $0 is any ExclusiveSink.Type },
    "PreviewingSink": { $0 is any PreviewingSink.Type },
    "FailingSink": { $0 is any FailingSink.Type },
    "VerifyingSink": { $0 is any VerifyingSink.Type },
    "LocalSink": { $0 is any LocalSink.Type },
    "RemovableSink": { $0 is any RemovableSink.Type },
    "ConnectingSink": { $0 is any ConnectingSink.Type },
    "TopicLimitedSink": { $0 is any TopicLimitedSink.Type },
    "BulkSink": { $0 is any BulkSink.Type },
    "ColumnNamingSink": { $0 is any ColumnNamingSink.Type },
    "RepairableSink": { $0 is any RepairableSink.Type },
    "PlanningSink": { $0 is any PlanningSink.Type },
    "DraftedSink": { $0 is any DraftedSink.Type },
    "RefoldingSink": { $0 is any RefoldingSink.Type },
    "RecallingSink": { $0 is any RecallingSink.Type },
  ]

  private static func opened<Sink: ConfiguredSink>(_ settings: Sink.Type) -> Any.Type {
    Sink.Opened.self
  }

  @Test("The page lists every ability, with the sinks that have it")
  func listed() throws {
    var listed: [String: [String]] = [:]
    for line in try RepositoryPages.prose("\(RepositoryPages.book)/WritingASink.md") {
      let cells = line.split(separator: "|").map { $0.split(separator: "`") }
      guard cells.count == 3, cells[1].count >= 2 else { continue }
      listed[String(cells[1][1])] = cells[2].map(String.init).filter { $0.first?.isLetter == true }
    }
    for (name, has) in Self.ofSinks {
      let types = SinkRegistry.types.filter { has(Self.opened($0)) }.map { $0.type }
      #expect(listed[name] == types.sorted(), "\(name)")
    }
    for (name, has) in Self.ofSettings {
      let types = SinkRegistry.types.filter(has).map { $0.type }
      #expect(listed[name] == types.sorted(), "\(name)")
    }
  }

  @Test("A sink of a run is kept by the checkpoint, or keeps its position")
  func kept() {
    for type in SinkRegistry.types {
      let opened = Self.opened(type)
      #expect(
        opened is any CheckpointedSink.Type != opened is any PositionKeepingSink.Type,
        "\(type.type)")
    }
  }
}
