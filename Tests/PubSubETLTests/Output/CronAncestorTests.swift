import Testing

@testable import PubSubETL

@Suite("Processes above a run") struct CronAncestorTests {
  @Test(
    "cron is found behind shells, whatever the names of processes between",
    arguments: [
      [9: "9 (pubsub-etl) R 8 9 9", 8: "8 (sh) S 7 7 7", 7: "7 (cron) S 1 7 7"],
      [9: "9 (pubsub-etl) R 8 9 9", 8: "8 (a) S 1 (b) S 7 7", 7: "7 (CROND) S 1 7 7"],
      [9: "9 (pubsub-etl) R 8 9 9", 8: "8 (anacron) S 1 1 1"],
    ] as [[Int32: String]])
  func found(processes: [Int32: String]) {
    #expect(CronAncestor.isThere(above: 9) { processes[$0] })
  }

  @Test(
    "Other surroundings, processes that cannot be seen, and circles are not cron",
    arguments: [
      [9: "9 (pubsub-etl) R 8 9 9", 8: "8 (systemd) S 0 1 1"],
      [9: "9 (pubsub-etl) R 8 9 9", 8: "8 (supercronic) S 1 1 1", 1: "1 (init) S 0 1 1"],
      [9: "9 (pubsub-etl) R 8 9 9"], [:], [9: "9 (pubsub-etl) R 9 9 9"], [9: "9 )cron( S 1"],
      [9: "9 (x) R"], [9: "9 (x) R 7", 7: "7 (not cron) S 0"],
    ] as [[Int32: String]])
  func notFound(processes: [Int32: String]) {
    #expect(!CronAncestor.isThere(above: 9) { processes[$0] })
  }
}
