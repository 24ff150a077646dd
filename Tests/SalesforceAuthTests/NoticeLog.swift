import EventLoop

/// What a flow tells besides its result.
final class NoticeLog: Sendable {
  private let notices = Lock<[String]>([])

  var all: [String] { self.notices.withLock { $0 } }

  func add(_ notice: String) { self.notices.withLock { $0.append(notice) } }
}
