internal import HTTPClient
internal import JSON

/// An object, change event or platform event, as the list of the org names it.
package struct ListedObject: Sendable, Equatable {
  package var name: String
  /// As Setup shows it; empty if the response has none that can be shown.
  package var label: String

  package init(name: String, label: String) { (self.name, self.label) = (name, label) }
}

/// A custom channel (TheService.md#topic-names).
package struct EventChannel: Sendable, Equatable {
  /// With the suffix `__chn`, and with the prefix of a package's namespace.
  package var name: String
  package var label: String
  /// Change events; otherwise platform events.
  package var hasChanges: Bool

  package init(name: String, label: String, hasChanges: Bool) {
    (self.name, self.label, self.hasChanges) = (name, label, hasChanges)
  }
}

extension RESTClient {
  private static let maxObjects = 50_000
  private static let maxChannels = 10_000

  /// Everything that the user may see in the org, in the order of the response. Needs only
  /// 'API Enabled'.
  ///
  /// Change events are listed for every object that can have them, selected or not.
  ///
  /// - Throws: `RESTError`, also for a response that is no list of objects.
  package func listedObjects() async throws -> [ListedObject] {
    let call = Call(path: "sobjects")
    guard let objects = try await self.json(call)["sobjects"]?.array else {
      throw RESTError(.retry, "\(call.name): the response has no list of objects")
    }
    guard objects.count <= Self.maxObjects else {
      throw RESTError(.stop, "\(call.name): the response has more than \(Self.maxObjects) objects")
    }
    return try objects.map { object throws(RESTError) in
      guard let name = object["name"]?.string, SOQL.isName(name) else {
        throw RESTError(.stop, "\(call.name): the response has an object without a usable name")
      }
      return ListedObject(name: name, label: object["label"]?.string?.shown(upTo: 255) ?? "")
    }
  }

  /// The org's custom channels. Needs View Setup and Configuration: without it, the object
  /// PlatformEventChannel does not exist for the user.
  ///
  /// - Throws: `RESTError`, also for a response with a channel that has no usable name or type.
  package func eventChannels() async throws -> [EventChannel] {
    var page = try await self.toolingQuery(
      SOQL.select(
        ["DeveloperName", "NamespacePrefix", "ChannelType", "MasterLabel"],
        from: "PlatformEventChannel"))
    let total = page.totalSize
    var channels = try page.records.map(Self.channel)
    while let next = page.next {
      page = try await self.nextPage(next)
      guard !page.records.isEmpty, channels.count + page.records.count <= total,
        channels.count <= Self.maxChannels
      else {
        throw RESTError(
          .stop, "PlatformEventChannel: the response has an empty page, or more than its size")
      }
      channels += try page.records.map(Self.channel)
    }
    return channels
  }

  static func channel(_ record: QueryRecord) throws(RESTError) -> EventChannel {
    guard let name = record["DeveloperName"], SOQL.isName(name),
      let prefix = record["NamespacePrefix"], prefix.isEmpty || SOQL.isName(prefix),
      let type = record["ChannelType"], ["data", "event"].contains(type)
    else {
      throw RESTError(
        .stop, "PlatformEventChannel: the response has a channel without a usable name or type")
    }
    return EventChannel(
      name: (prefix.isEmpty ? "" : "\(prefix)__") + "\(name)__chn",
      label: record["MasterLabel"]?.shown(upTo: 255) ?? "", hasChanges: type == "data")
  }
}
