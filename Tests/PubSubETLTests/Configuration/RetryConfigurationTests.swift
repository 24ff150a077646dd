import Clocks
import Pipeline
import Testing

@testable import PubSubETL

@Suite("Configuration of retries")
struct RetryConfigurationTests {
  private static func load(_ retry: String) throws -> RetryConfiguration {
    try SamplePipeline().load(sets: ["retry=\(retry)"]).retry
  }

  @Test("A following run never gives up, and one that ends by itself gives up after ten minutes")
  func defaults() throws {
    let retry = try SamplePipeline().load().retry
    #expect(retry == RetryConfiguration())
    #expect(retry.schedule(follows: true).giveUpAfter == nil)
    #expect(retry.schedule(follows: false) == RetrySchedule())
    #expect(retry.schedule(follows: false).giveUpAfter == .seconds(600))
    #expect(retry.refusedDelay == .seconds(600))
  }

  @Test(
    "Unless give_up_after is set, a run waits over 15 minutes for a managed subscription in use")
  func subscriptionPatience() throws {
    #expect(try Self.load(#"{"min_delay":"2s"}"#).subscriptionPatience == .seconds(1200))
    #expect(try Self.load(#"{"give_up_after":"5s"}"#).subscriptionPatience == .seconds(5))
  }

  @Test("Each key is read, and one delay sets the other")
  func keys() throws {
    let all = try Self.load(
      #"{"give_up_after":"1h","min_delay":"2s","max_delay":"3m","refused_delay":"5m"}"#)
    #expect(all.giveUpAfter == .seconds(3600))
    #expect(all.subscriptionPatience == .seconds(3600))
    #expect(
      all.schedule(follows: true)
        == RetrySchedule(giveUpAfter: nil, minDelay: .seconds(2), maxDelay: .seconds(180)))
    #expect(all.refusedDelay == .seconds(300))
    #expect(try Self.load(#"{"max_delay":"500ms"}"#).minDelay == .milliseconds(500))
    #expect(try Self.load(#"{"min_delay":"2m"}"#).maxDelay == .seconds(120))
    #expect(try Self.load(#"{"give_up_after":"0"}"#).giveUpAfter == .zero)
  }

  @Test(
    "Values that are out of range or order are reported with their path",
    arguments: [
      (#"{"give_up_after":"73h"}"#, "/retry/give_up_after"),
      (#"{"give_up_after":10}"#, "/retry/give_up_after"),
      (#"{"min_delay":"1ms"}"#, "/retry/min_delay"),
      (#"{"max_delay":"2h"}"#, "/retry/max_delay"),
      (#"{"min_delay":"10s","max_delay":"5s"}"#, "/retry/min_delay: must not be longer"),
      (#"{"refused_delay":"0"}"#, "/retry/refused_delay"),
      (#"{"attempts":3}"#, "/retry/attempts: unknown key"),
    ])
  func mistakes(retry: String, expected: String) throws {
    let mistakes = try SamplePipeline().mistakes(sets: ["retry=\(retry)"])
    #expect(mistakes.contains { $0.contains(expected) }, "\(mistakes)")
  }
}
