import FoundationEssentials
import SwiftProtobuf

/// Input: a message. Our reader and SwiftProtobuf read the same, or both refuse.
///
/// Compiled together with the reader and the generated messages, so no module is imported.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzFetchResponse(_ data: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: data, count: count))
  let theirs = Result { try Eventbus_V1_FetchResponse(serializedBytes: bytes) }
  let ours: FetchResponseView
  do throws(FetchResponseError) {
    ours = try FetchResponseView(parsing: bytes)
  } catch {
    require((try? theirs.get()) == nil, "\(error), but SwiftProtobuf reads it")
    require((0...count).contains(error.offset), "offset \(error.offset) of \(count)")
    return 0
  }
  let theirMessage: Eventbus_V1_FetchResponse
  do { theirMessage = try theirs.get() } catch { fatalError("SwiftProtobuf: \(error)") }
  require(ours.events.count == theirMessage.events.count, "another number of events")
  for (event, other) in zip(ours.events, theirMessage.events) {
    require(ours.string(event.eventID) == other.event.id, "another event ID")
    require(ours.string(event.schemaID) == other.event.schemaID, "another schema ID")
    require(ours[event.payload].elementsEqual(other.event.payload), "another payload")
    require(ours[event.replayID].elementsEqual(other.replayID), "another replay ID")
  }
  require(
    ours[ours.latestReplayIDField].elementsEqual(theirMessage.latestReplayID),
    "another latest replay ID")
  require(ours.string(ours.rpcID) == theirMessage.rpcID, "another RPC ID")
  require(ours.pendingCredit == Int(theirMessage.pendingNumRequested), "another credit")
  return 0
}
