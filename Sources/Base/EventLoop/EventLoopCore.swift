import CSystem
internal import Clocks
import Glibc

/// The state that the thread of an `EventLoop` works on. Separate from the loop, so that the thread
/// does not keep the loop alive.
final class EventLoopCore: @unchecked Sendable {
  // Guard: `inbox` has a lock of its own; all other variables belong to the loop's thread.

  enum Entry {
    case work(@Sendable () -> Void)
    case job(UnownedJob, UnownedTaskExecutor)
    case end
  }

  private struct Inbox {
    var entries: [Entry] = []
    /// Whether the thread waits in `epoll_wait` and must be woken.
    var isAsleep = false
    var thread: pthread_t?
  }

  private final class Registration {
    let handler: (EventLoop.Readiness) -> Void
    var interest: EventLoop.Readiness
    let generation: UInt32

    init(
      handler: @escaping (EventLoop.Readiness) -> Void, interest: EventLoop.Readiness,
      generation: UInt32
    ) {
      self.handler = handler
      self.interest = interest
      self.generation = generation
    }
  }

  let clock: ProcessClock
  private let epoll: Int32
  private let wakeup: Int32
  private let inbox = Lock(Inbox())
  private var registrations: [Int32: Registration] = [:]
  /// Tells a registration from an earlier one of the same descriptor number.
  private var generation: UInt32 = 0
  private var timers = TimerQueue<() -> Void>()
  private var hasEnded = false
  /// The loop's number to whoever serves the time.
  private var number = 0

  init(clock: ProcessClock) throws(SystemCallError) {
    self.clock = clock
    self.epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
    guard self.epoll >= 0 else { throw SystemCallError("epoll_create1") }
    self.wakeup = eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK))
    guard self.wakeup >= 0 else {
      let error = SystemCallError("eventfd")
      close(self.epoll)
      throw error
    }
    var event = epoll_event()
    event.events = EPOLLIN.rawValue
    event.data.u64 = UInt64(UInt32(bitPattern: self.wakeup))
    guard epoll_ctl(self.epoll, EPOLL_CTL_ADD, self.wakeup, &event) == 0 else {
      let error = SystemCallError("epoll_ctl")
      close(self.epoll)
      close(self.wakeup)
      throw error
    }
  }

  deinit {
    close(self.epoll)
    close(self.wakeup)
  }

  var isCurrent: Bool {
    guard let thread = self.inbox.withLock({ $0.thread }) else { return false }
    return pthread_equal(thread, pthread_self()) != 0
  }

  func post(_ entry: Entry) {
    let mustWake = self.inbox.withLock { inbox in
      inbox.entries.append(entry)
      defer { inbox.isAsleep = false }
      return inbox.isAsleep
    }
    if mustWake {
      var one: UInt64 = 1
      // Fails only when the counter is full, and then the thread is awake.
      _ = write(self.wakeup, &one, 8)
    }
  }

  func run() {
    self.inbox.withLock { $0.thread = pthread_self() }
    if let service = self.clock.service {
      self.number = service.loopBegins { [weak self] in self?.post(.work {}) }
    }
    defer { self.clock.service?.loopEnds(self.number) }
    var events = [epoll_event](repeating: epoll_event(), count: 64)
    while !self.hasEnded {
      self.runEntries()
      self.runTimers()
      let timeout = self.timeoutBeforeWaiting()
      let count = epoll_wait(self.epoll, &events, Int32(events.count), timeout)
      self.inbox.withLock { $0.isAsleep = false }
      guard count >= 0 else {
        precondition(errno == EINTR, "epoll_wait: \(SystemCallError.text(of: errno))")
        continue
      }
      for event in events.prefix(Int(count)) { self.dispatch(event) }
    }
    self.dropAll()
  }

  func dropAll() {
    for descriptor in Array(self.registrations.keys) { self.deregister(descriptor) }
    self.timers.removeAll()
  }

  private func runEntries() {
    let entries = self.inbox.withLock { inbox in
      var taken: [Entry] = []
      swap(&taken, &inbox.entries)
      return taken
    }
    for entry in entries {
      switch entry {
      case .work(let work): work()
      case .job(let job, let executor): job.runSynchronously(on: executor)
      case .end: self.hasEnded = true
      }
    }
  }

  private func runTimers() {
    guard !self.timers.isEmpty else { return }
    let now = self.clock.now
    while let work = self.timers.popDue(now: now) { work() }
  }

  /// Milliseconds for `epoll_wait`; marks the thread as asleep unless work is there already.
  private func timeoutBeforeWaiting() -> Int32 {
    var timeout: Int32 = -1
    let deadline = self.timers.nextDeadline()
    self.clock.service?.loop(self.number, waitsUntil: deadline)
    if let deadline {
      let (seconds, attoseconds) = (deadline - self.clock.now).components
      // Rounded up: waking too early would spin until the deadline.
      let milliseconds =
        seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
      timeout = Int32(clamping: max(0, min(milliseconds, 3_600_000)))
    }
    return self.inbox.withLock { inbox in
      guard inbox.entries.isEmpty, !self.hasEnded else { return 0 }
      inbox.isAsleep = true
      return timeout
    }
  }

  private func dispatch(_ event: epoll_event) {
    let descriptor = Int32(bitPattern: UInt32(truncatingIfNeeded: event.data.u64))
    if descriptor == self.wakeup {
      var value: UInt64 = 0
      _ = read(self.wakeup, &value, 8)
      return
    }
    // A handler that ran before in this batch may have ended this registration.
    guard let registration = self.registrations[descriptor],
      registration.generation == UInt32(truncatingIfNeeded: event.data.u64 >> 32)
    else { return }
    var readiness: EventLoop.Readiness = []
    if event.events & (EPOLLIN.rawValue | EPOLLRDHUP.rawValue) != 0 { readiness.insert(.readable) }
    if event.events & EPOLLOUT.rawValue != 0 { readiness.insert(.writable) }
    if event.events & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0 {
      readiness = [.readable, .writable]
    }
    registration.handler(readiness)
  }

  // On the loop's thread only.

  func register(
    _ descriptor: Int32, interest: EventLoop.Readiness,
    handler: @escaping (EventLoop.Readiness) -> Void
  ) throws(SystemCallError) {
    self.generation &+= 1
    let registration = Registration(
      handler: handler, interest: interest, generation: self.generation)
    try self.control(EPOLL_CTL_ADD, descriptor, registration)
    self.registrations[descriptor] = registration
    self.clock.service?.loopsWatch(descriptor)
  }

  func update(_ descriptor: Int32, interest: EventLoop.Readiness) throws(SystemCallError) {
    guard let registration = self.registrations[descriptor] else { return }
    guard registration.interest != interest else { return }
    registration.interest = interest
    try self.control(EPOLL_CTL_MOD, descriptor, registration)
  }

  func deregister(_ descriptor: Int32) {
    guard self.registrations.removeValue(forKey: descriptor) != nil else { return }
    self.clock.service?.loopsIgnore(descriptor)
    epoll_ctl(self.epoll, EPOLL_CTL_DEL, descriptor, nil)
  }

  func schedule(at deadline: ContinuousClock.Instant, _ work: @escaping () -> Void) -> UInt64 {
    self.timers.add(work, at: deadline)
  }

  func cancel(_ timer: UInt64) { self.timers.cancel(timer) }

  private func control(
    _ operation: Int32, _ descriptor: Int32, _ registration: Registration
  ) throws(SystemCallError) {
    var event = epoll_event()
    if registration.interest.contains(.readable) {
      event.events |= EPOLLIN.rawValue | EPOLLRDHUP.rawValue
    }
    if registration.interest.contains(.writable) { event.events |= EPOLLOUT.rawValue }
    event.data.u64 =
      UInt64(registration.generation) << 32 | UInt64(UInt32(bitPattern: descriptor))
    guard epoll_ctl(self.epoll, operation, descriptor, &event) == 0 else {
      throw SystemCallError("epoll_ctl")
    }
  }
}
