import Dispatch
import Glibc

/// SIGINT, SIGTERM, SIGHUP and SIGUSR1, in the order in which they come.
struct SignalStream {
  let stream: AsyncStream<Int32>
  private let sources: [any DispatchSourceSignal]

  /// From now on these signals end nothing by themselves.
  init() {
    let (stream, continuation) = AsyncStream.makeStream(of: Int32.self)
    self.stream = stream
    // `nohup` makes a program ignore the end of its terminal.
    let isHangUpIgnored = unsafeBitCast(signal(SIGHUP, SIG_IGN), to: Int.self) == 1
    let numbers = [SIGINT, SIGTERM, SIGUSR1] + (isHangUpIgnored ? [] : [SIGHUP])
    self.sources = numbers.map { number in
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number)
      source.setEventHandler { continuation.yield(number) }
      source.resume()
      return source
    }
  }
}
