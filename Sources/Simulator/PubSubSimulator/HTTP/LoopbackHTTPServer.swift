internal import CMicroHTTPD
internal import EventLoop
internal import Foundation
internal import SimulatedOrg

/// An HTTP/1.1 server on 127.0.0.1, running until `stop`.
final class LoopbackHTTPServer: Sendable {
  typealias Handler = @Sendable (HTTPRequest) async -> HTTPResponse

  // Set by `init`, ended by the one call of `stop`; libmicrohttpd has locks of its own.
  private nonisolated(unsafe) let daemon: OpaquePointer
  // Given back by that call, after the last callback.
  private let context: Unmanaged<Context>
  let port: UInt16

  private final class Context: Sendable {
    let handler: Handler
    init(_ handler: @escaping Handler) { self.handler = handler }
  }

  /// A request whose body is still coming. Used by the thread of its connection.
  private final class Incoming {
    static let maxBodyByteCount = 1 << 20
    var body = Data()
    var isTooLarge: Bool { self.body.count > Self.maxBodyByteCount }
  }

  /// - Parameter port: 0: chosen by the system.
  init(port: UInt16, handler: @escaping Handler) throws {
    // The daemon's, until `stop`: a server that is dropped without it still takes requests.
    let context = Unmanaged.passRetained(Context(handler))
    let started = c_mhd_start(
      port,
      { context, connection, path, method, _, upload, uploadCount, request in
        guard let context, let connection, let path, let method, let uploadCount, let request else {
          return c_mhd_no()
        }
        return LoopbackHTTPServer.handle(
          Unmanaged<Context>.fromOpaque(context).takeUnretainedValue(), connection,
          method: String(cString: method), path: String(cString: path), upload, uploadCount,
          request)
      },
      context.toOpaque(),
      { _, _, request, _ in
        guard let incoming = request?.pointee else { return }
        Unmanaged<Incoming>.fromOpaque(incoming).release()
        request?.pointee = nil
      })
    guard let started else {
      let error = SimulatorError.system("HTTP on 127.0.0.1:\(port)")
      context.release()
      throw error
    }
    self.daemon = started
    self.context = context
    self.port = c_mhd_port(started)
  }

  /// Ends its connections. Requests at hand are answered first.
  func stop() async {
    await withCheckedContinuation { continuation in
      // It waits for threads that may wait for tasks.
      DispatchQueue.global().async {
        MHD_stop_daemon(self.daemon)
        self.context.release()
        continuation.resume()
      }
    }
  }

  /// Called for the head of a request, for each part of its body and at its end.
  private static func handle(
    _ context: Context, _ connection: OpaquePointer, method: String, path: String,
    _ upload: UnsafePointer<CChar>?, _ uploadCount: UnsafeMutablePointer<Int>,
    _ request: UnsafeMutablePointer<UnsafeMutableRawPointer?>
  ) -> MHD_Result {
    guard let known = request.pointee else {
      request.pointee = Unmanaged.passRetained(Incoming()).toOpaque()
      return c_mhd_yes()
    }
    let incoming = Unmanaged<Incoming>.fromOpaque(known).takeUnretainedValue()
    if uploadCount.pointee > 0, let upload {
      if !incoming.isTooLarge {
        incoming.body.append(
          contentsOf: UnsafeRawBufferPointer(start: upload, count: uploadCount.pointee))
      }
      uploadCount.pointee = 0
      return c_mhd_yes()
    }
    guard !incoming.isTooLarge else {
      return Self.send(.text("Content Too Large", status: 413), over: connection)
    }
    let complete = HTTPRequest(
      method: method, path: path, query: Self.values(c_mhd_query(), of: connection),
      headers: Self.values(c_mhd_headers(), of: connection, lowercase: true), body: incoming.body)
    return Self.send(Self.wait { await context.handler(complete) }, over: connection)
  }

  /// The thread is the connection's own: nothing else waits for it.
  private static func wait(
    for body: @escaping @Sendable () async -> HTTPResponse
  ) -> HTTPResponse {
    let response = Lock<HTTPResponse?>(nil)
    let isDone = DispatchSemaphore(value: 0)
    Task {
      let answer = await body()
      response.withLock { $0 = answer }
      isDone.signal()
    }
    isDone.wait()
    return response.withLock { $0 } ?? .text("", status: 500)
  }

  private static func send(_ response: HTTPResponse, over connection: OpaquePointer) -> MHD_Result {
    let made = response.body.withUnsafeBytes {
      switch response.delivery {
      case .whole: c_mhd_response($0.baseAddress, $0.count)
      case .dropped: c_mhd_faulty_response($0.baseAddress, $0.count, $0.count / 2, 0)
      case .dripping: c_mhd_faulty_response($0.baseAddress, $0.count, $0.count, 1)
      }
    }
    guard let made else { return c_mhd_no() }
    defer { MHD_destroy_response(made) }
    for (name, value) in response.headers { _ = MHD_add_response_header(made, name, value) }
    return MHD_queue_response(connection, UInt32(response.status), made)
  }

  private static func values(
    _ kind: MHD_ValueKind, of connection: OpaquePointer, lowercase: Bool = false
  ) -> [String: String] {
    var pairs: [(String, String)] = []
    withUnsafeMutablePointer(to: &pairs) { pairs in
      _ = MHD_get_connection_values(
        connection, kind,
        { context, _, name, value in
          guard let name else { return c_mhd_yes() }
          context?.assumingMemoryBound(to: [(String, String)].self).pointee.append(
            (String(cString: name), value.map { String(cString: $0) } ?? ""))
          return c_mhd_yes()
        }, pairs)
    }
    return Dictionary(
      pairs.map { (lowercase ? $0.lowercased() : $0, $1) }, uniquingKeysWith: { $1 })
  }
}
