import Clocks
import EventLoop
import Foundation
import HTTPClient
import OrgTestSupport
import Pipeline
import SalesforceREST
import TestSupport
import Testing

@testable import RESTSource

/// Answers that no honest org gives (`rest_peer.py`): nothing counts as complete that is not, nothing
/// goes round in circles, and no row is taken that could not be one of the object's.
@Suite("Hostile orgs") struct HostileOrgTests {
  private struct Sessions: RESTSessionSource {
    var url: String

    func session() -> RESTSession { RESTSession(accessToken: "token", instanceURL: self.url) }
    func worked(_ session: RESTSession) {}
    func refused(_ session: RESTSession) -> Bool { false }
  }

  private struct Told {
    var rows = 0
    /// Milliseconds since 1970.
    var stamps: [Int64] = []
    var unreadable: [UnreadableRecord] = []
    var jobs = 0
    var failure: SourceFailure?
  }

  private let peer: PythonServer

  init() throws { self.peer = try PythonServer("rest_peer.py") }

  private func client(_ name: String) -> RESTClient {
    RESTClient(
      http: HTTPClient(HTTPClient.Configuration()),
      sessions: Sessions(url: "http://127.0.0.1:\(self.peer.port)/\(name)"))
  }

  private func read(_ name: String) async throws -> Told {
    let object = ReadObject(
      entity: "Account", topic: "/data/AccountChangeEvent",
      layout: try SnapshotDecoderTests.layout(of: "Account"))
    let (woken, wake) = AsyncStream<Void>.makeStream()
    var options = SnapshotReader.Options()
    options.retry = RetrySchedule(giveUpAfter: .seconds(3), minDelay: .milliseconds(200))
    let reader = SnapshotReader([object], client: self.client(name), options: options) {
      wake.yield()
    }
    let background = Task(operation: reader.background)
    defer { background.cancel() }
    reader.begin(object: 0, ReadPass(entity: "Account", number: 1))
    var told = Told()
    for await _ in woken {
      while let signal = reader.next() {
        switch signal {
        case .progress(_, let pass):
          if pass.state == .complete { return told }
          if pass.locator == nil, pass.row == 0 { told.jobs += 1 }
        case .records(_, let batch, _):
          told.rows += batch.events.count
          told.stamps += batch.events.compactMap(\.commitTimestamp)
        case .unreadable(_, _, let record): told.unreadable.append(record)
        case .failed(_, let failure):
          told.failure = failure
          return told
        case .retrying, .waiting, .underWay, .found, .notAsked: break
        }
      }
    }
    return told
  }

  @Test("A pass that cannot be complete fails after few requests")
  func incomplete() async throws {
    let names = [
      "short_job", "short_job_without_locator", "long_job", "same_locator", "empty_pages",
      "huge_count", "same_page", "empty_query", "huge_total", "more_than_all",
      "circle", "page_circle", "no_count", "text_count", "no_rows",
    ]
    // Side by side, because most of the time is spent between attempts.
    try await withThrowingTaskGroup(of: Void.self) { group in
      for name in names {
        group.addTask {
          let told = try await self.read(name)
          #expect(told.failure != nil, "\(name)")
          let requests = try await HTTPClient(HTTPClient.Configuration()).send(
            HTTPRequest(.get, "http://127.0.0.1:\(self.peer.port)/\(name)/requests"))
          let count = Int(String(decoding: requests.body, as: UTF8.self)) ?? .max
          // Five attempts of six: describe, job, state, three pages.
          #expect(count <= 30, "\(name)")
        }
      }
      try await group.waitForAll()
    }
  }

  @Test("A stamp ahead of the org's own clock is stored as the time of the read")
  func ahead() async throws {
    let before = Date().timeIntervalSince1970
    let ahead = try await self.read("ahead")
    let after = Date().timeIntervalSince1970
    let stamp = try #require(ahead.stamps.first.map { Double($0) / 1000 })
    // The org's clock is in whole seconds, and the rest of the second counts.
    #expect(ahead.rows == 1 && stamp >= before.rounded(.down) && stamp < after + 1)
  }

  @Test("Foreign rows and rows from the future are reported, and the others are read")
  func odd() async throws {
    let odd = try await self.read("odd_rows")
    #expect(odd.failure == nil && odd.rows == 2)
    #expect(
      odd.unreadable.map(\.reason) == [
        "Id: not the ID of a record of Account", "Id: not the ID of a record of Account",
      ])
    let future = try await self.read("future")
    #expect(future.failure == nil && future.rows == 0)
    #expect(future.unreadable.map(\.reason) == ["SystemModstamp: later than the org's own clock"])
    #expect(future.unreadable.map(\.recordID) == ["001000000000001AAA"])
    let lacking = try await self.read("lacking_fields")
    #expect(lacking.failure == nil && lacking.rows == 0)
    #expect(
      lacking.unreadable.map(\.reason) == ["Name: not in the response, or not a single value"])
  }
}
