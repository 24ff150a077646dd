import Testing

@testable import PostgresSink

@Suite("Reads and events of one record") struct ReadMergeTests {
  private static func event(
    _ commit: Int64?, arrived: Int64 = 0, gap: Bool = false
  ) -> ReadMerge.Event {
    ReadMerge.Event(commit: commit, arrivedAt: arrived, isGap: gap)
  }

  @Test(
    "A read contains events clearly before its stamp, and all from the first later one apply"
  )
  func prefix() {
    let read = ReadMerge.Read(stamp: 20_000, readAt: 100_000)
    let events = [14_000, 14_999, 15_000, 14_000, 30_000].map {
      Self.event($0, arrived: 99_000)
    }
    #expect(ReadMerge.firstApplied(read, events) == 2)
    #expect(ReadMerge.firstApplied(read, Array(events[..<2])) == 2)
    #expect(ReadMerge.firstApplied(read, [Self.event(nil, arrived: 99_000)] + events) == 0)
  }

  @Test("Every read contains the creation of its record, whatever the clocks say")
  func containsCreation() {
    let read = ReadMerge.Read(stamp: 20_000, readAt: 22_000)
    for commit: Int64 in [20_000, 24_000] {
      var creation = Self.event(commit, arrived: 21_000)
      creation.isCreation = true
      #expect(
        ReadMerge.firstApplied(read, [creation, Self.event(25_000, arrived: 26_000)]) == 1)
      var progress = ReadProgress(after: read)
      let taken = [creation, Self.event(25_000, arrived: 26_000)].map { progress.takes($0) }
      #expect(taken == [false, true])
    }
  }

  @Test("A read settles gaps older than its stamp less the tolerance, and others after the wait")
  func settles() {
    let read = ReadMerge.Read(stamp: 20_000, readAt: 100_000)
    func settles(_ commit: Int64?, _ arrived: Int64) -> Bool {
      ReadMerge.settles(read, Self.event(commit, arrived: arrived, gap: true))
    }
    #expect(settles(14_999, 100_000))
    #expect(!settles(15_000, 40_001))
    #expect(settles(15_000, 40_000))
    #expect(settles(nil, 40_000))
    #expect(!settles(nil, 40_001))
  }

  @Test("Events before a settled gap are not applied, even with a later time")
  func protectionEnds() {
    let read = ReadMerge.Read(stamp: 20_000, readAt: 100_000)
    let events = [
      Self.event(18_000, arrived: 21_000), Self.event(19_000, arrived: 22_000, gap: true),
      Self.event(25_000, arrived: 90_000),
    ]
    #expect(ReadMerge.firstApplied(read, events) == 2)
    let soon = ReadMerge.Read(stamp: 20_000, readAt: 50_000)
    #expect(ReadMerge.firstApplied(soon, events) == 0)
  }

  @Test("Events that were visible to every reader at the time of the read are not applied")
  func visible() {
    let read = ReadMerge.Read(stamp: 20_000, readAt: 100_000)
    let events = [
      Self.event(18_000, arrived: 39_000), Self.event(19_000, arrived: 40_000),
      Self.event(19_000, arrived: 40_001),
    ]
    #expect(ReadMerge.firstApplied(read, events) == 2)
  }

  @Test("The newest stamp is the newest read, and the later read decides between equal stamps")
  func newest() {
    let read = ReadMerge.Read(stamp: 20_000, readAt: 100_000)
    #expect(ReadMerge.Read(stamp: 36_000, readAt: 90_000).isNewer(than: read))
    #expect(ReadMerge.Read(stamp: 20_000, readAt: 100_001).isNewer(than: read))
    #expect(!ReadMerge.Read(stamp: 19_000, readAt: 84_999).isNewer(than: read))
    #expect(!read.isNewer(than: read))
  }

  @Test("A read from after every reader could see the other's change is newer, whatever its stamp")
  func hasSeen() {
    let read = ReadMerge.Read(stamp: 20_000, readAt: 30_000)
    let later = ReadMerge.Read(stamp: 19_000, readAt: 85_000)
    #expect(later.isNewer(than: read) && !read.isNewer(than: later))
    let soon = ReadMerge.Read(stamp: 19_000, readAt: 84_999)
    #expect(!soon.isNewer(than: read) && read.isNewer(than: soon))
  }
}
