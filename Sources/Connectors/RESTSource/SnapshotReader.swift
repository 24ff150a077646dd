package import Clocks
internal import EventLoop
package import Pipeline
package import SalesforceREST

/// Reads all records of objects with Bulk API 2.0, or by pages if Bulk refuses, as rows of their
/// events' layout.
///
/// Driven by one thread; reads in `background`, at most a few batches ahead.
package final class SnapshotReader: RecordReader {
  package struct Options: Sendable {
    /// The number of objects read at a time.
    package var concurrency = 2
    /// The share of the org's daily API requests that requests for records by ID leave to others.
    package var reserve = 0.2
    /// The maximum number of calls for records by ID per day; nil means 5 % of the org's daily API
    /// requests.
    package var maxRepairCalls: Int?
    /// The number of such calls that earlier runs have made in the last day.
    package var repairCallsMade = 0
    /// The retries of temporary failures; they start again when records arrive.
    package var retry = RetrySchedule()
    /// How long a Bulk job may show no progress. Salesforce begins a part of a job again after 20
    /// minutes at the latest, which counts as progress.
    package var jobPatience = Duration.seconds(2 * 3600)
    /// The time between two signals while waiting for a job.
    package var waitReports = Duration.seconds(300)
    /// The org's clock as far as it was known before the first call; nil to ask for it.
    package var serviceClock: ServiceClock?

    package init() {}
  }

  private enum Request: Sendable {
    case pass(object: Int, ReadPass)
    case records(object: Int, ids: [String], store: Int)

    var object: Int {
      switch self {
      case .pass(let object, _), .records(let object, _, _): object
      }
    }
  }

  package let objects: [ReadObject]
  private let signals: SignalQueue<SnapshotDelivery>
  private let batches = BatchPool()
  private let client: RESTClient
  private let options: Options
  /// Descriptions of objects that are young enough, by name.
  private let described: [String: ObjectDescription]
  private let outdated = Lock(Set<String>())
  private let begun: AsyncStream<Request>
  private let begunSink: AsyncStream<Request>.Continuation
  private let wake: @Sendable () -> Void

  /// - Parameters:
  ///   - described: descriptions that are used instead of asking, until one proves wrong.
  ///   - wake: called from any thread when `next` has something.
  package init(
    _ objects: [ReadObject], client: RESTClient, options: Options = Options(),
    described: [String: ObjectDescription] = [:],
    wake: @escaping @Sendable () -> Void
  ) {
    self.objects = objects
    self.client = client
    self.signals = SignalQueue(limit: 3, clock: client.clock)
    self.options = options
    self.described = described
    self.wake = wake
    (self.begun, self.begunSink) = AsyncStream.makeStream()
  }

  package func begin(object: Int, _ pass: ReadPass) {
    self.begunSink.yield(.pass(object: object, pass))
  }

  package func read(object: Int, ids: [String], store: Int) {
    self.begunSink.yield(.records(object: object, ids: ids, store: store))
  }

  /// The objects whose known descriptions have proved wrong.
  package var outdatedDescriptions: Set<String> { self.outdated.withLock { $0 } }

  package func next() -> ReadSignal? { self.signals.poll()?.signal }

  package func recycle(_ batch: RecordBatch) { self.batches.giveBack(batch) }

  /// Reads the records. Run this alongside the runner, and cancel it afterwards.
  package var background: @Sendable () async -> Void {
    { [begun, objects, client, options, described, outdated, batches, signals, wake] in
      let allowance = RepairAllowance(options, from: client.clock.now)
      await withDiscardingTaskGroup { group in
        let places = AsyncStream<Void>.makeStream()
        for _ in 0..<max(1, options.concurrency) { places.continuation.yield() }
        var free = places.stream.makeAsyncIterator()
        for await request in begun {
          guard await free.next() != nil else { break }
          let read = ObjectRead(
            object: request.object, objects[request.object], client: client, options: options,
            described: described[objects[request.object].entity], allowance: allowance,
            batches: batches, signals: signals, wake: wake)
          group.addTask {
            switch request {
            case .pass(_, let pass):
              await read.run(pass) { entity in outdated.withLock { _ = $0.insert(entity) } }
            case .records(_, let ids, let store): await read.read(ids: ids, store: store)
            }
            places.continuation.yield()
          }
        }
        group.cancelAll()
      }
    }
  }
}

/// A signal on its way to the runner.
struct SnapshotDelivery: @unchecked Sendable {
  // A batch is handed over completely; the sender keeps no reference to it.
  let signal: ReadSignal
}
