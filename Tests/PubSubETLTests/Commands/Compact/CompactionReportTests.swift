import FileSink
import JSON
import Testing

@testable import PubSubETL

@Suite("Report of a compaction")
struct CompactionReportTests {
  private func report(isDryRun: Bool = false) -> CompactionReport {
    var sink = FilesSettings()
    sink.directory = "/srv/out"
    var joined = CompactedObject(folder: "Opportunity")
    (joined.fileCount, joined.byteCount) = (2400, 3_250_585)
    (joined.replacedFileCount, joined.newFileCount) = (2390, 3)
    if !isDryRun { (joined.replacedByteCount, joined.newByteCount) = (3_240_000, 2_000_000) }
    (joined.busyFolderCount, joined.snapshotFileCount) = (1, 7)
    joined.faults = ["a.ndjson.zst was changed"]
    var whole = CompactedObject(folder: "Account")
    (whole.fileCount, whole.byteCount) = (1, 1024)
    var report = CompactionReport(pipeline: "opps", isDryRun: isDryRun)
    report.entries = [.init(sink: sink, objects: [whole, joined]), .init(sink: sink, objects: [])]
    return report
  }

  @Test("It shows the files of each object before and after")
  func text() {
    #expect(
      self.report().text == """
        sink          files, files in /srv/out
        Account       1 file, 1.0 KiB: nothing to join
        Opportunity   2,400 files, 3.0 MiB: now 13 files, 1.9 MiB; 7 files of snapshots stay as they are; 1 folder with files in progress, folders or links stays as it is
        sink          files, files in /srv/out
                      no finished files

        """)
    #expect(
      self.report(isDryRun: true).text.contains(
        "2,400 files, 3.0 MiB: would become 13 files; 7 files of snapshots stay"))
  }

  @Test("Its JSON has all members, and no size that a dry run does not know")
  func json() {
    let object = self.report().json["sinks"]?.array?[0]["objects"]?.array?[1]
    #expect(
      object == [
        "object": "Opportunity", "files_before": 2400, "files_after": 13,
        "bytes_before": 3_250_585, "bytes_after": 2_010_585, "snapshot_files": 7,
        "busy_folders": 1, "faults": ["a.ndjson.zst was changed"],
      ])
    let planned = self.report(isDryRun: true).json
    #expect(planned["dry_run"] == true)
    #expect(
      planned["sinks"]?.array?[0]["objects"]?.array?[0].members?.first { $0.name == "bytes_after" }?
        .value == JSONValue(.null))
  }
}
