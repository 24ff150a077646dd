import Testing

@testable import PubSubSource

@Suite struct SignalChannelTests {
  @Test("Elements come in the order of posting")
  func order() async {
    let channel = SignalChannel<Int>(limit: 10)
    for number in 0..<200 { channel.post(number) }
    for number in 0..<200 {
      #expect(await channel.receive(until: .now + .seconds(60)) == number)
    }
  }

  // The timer could fire before the receiver had begun to wait, which then waited for ever.
  @Test(
    "A deadline that is over is noticed however it races with the wait", .timeLimit(.minutes(1)))
  func expiredDeadline() async {
    let channel = SignalChannel<Int>(limit: 10)
    for _ in 0..<5000 { #expect(await channel.receive(until: .now) == nil) }
  }

  @Test("A sender above the limit waits until enough has been received")
  func backpressure() async {
    let channel = SignalChannel<Int>(limit: 10)
    await channel.send(1, weight: 10)
    let second = Task { await channel.send(2, weight: 1) }
    #expect(await channel.receive(until: .now + .seconds(60)) == 1)
    #expect(await channel.receive(until: .now + .seconds(60)) == 2)
    await second.value
  }

  @Test("A cancelled sender leaves its element and waits no longer")
  func cancelledSender() async {
    let channel = SignalChannel<Int>(limit: 0)
    let sender = Task { await channel.send(1, weight: 5) }
    sender.cancel()
    await sender.value
    #expect(await channel.receive(until: .now + .seconds(60)) == 1)
  }
}
