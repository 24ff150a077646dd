// Logs in with client credentials, subscribes to a topic, and prints each event as a line of JSON.
// subscribe TOPIC COUNT; SF_LOGIN_URL, SF_CLIENT_ID and SF_CLIENT_SECRET are in the environment.
import Foundation
import SalesforcePubSub

func fail(_ code: Int32, _ message: String) -> Never {
  FileHandle.standardError.write(Data("\(message)\n".utf8))
  exit(code)
}

let environment = ProcessInfo.processInfo.environment
guard CommandLine.arguments.count == 3, let count = Int(CommandLine.arguments[2]),
  let loginURL = environment["SF_LOGIN_URL"], let clientID = environment["SF_CLIENT_ID"],
  let clientSecret = environment["SF_CLIENT_SECRET"]
else { fail(64, "usage: SF_LOGIN_URL=… SF_CLIENT_ID=… SF_CLIENT_SECRET=… subscribe TOPIC COUNT") }
var configuration = SalesforcePubSubClient.Configuration(
  login: .clientCredentials(loginURL: loginURL, clientID: clientID, clientSecret: clientSecret))
if let endpoint = environment["PUBSUB_ENDPOINT"] { configuration.endpoint = endpoint }
configuration.caFile = environment["PUBSUB_CA_FILE"]
configuration.schemaDirectory = environment["SCHEMA_DIRECTORY"]

do {
  try await SalesforcePubSubClient.with(configuration) { client in
    var left = count
    for try await event in client.events(of: CommandLine.arguments[1], after: .earliest) {
      print(try await event.json())
      left -= 1
      if left == 0 { break }
    }
  }
} catch {
  fail(69, "subscribe: \(error)")
}
