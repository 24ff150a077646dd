// Logs in with client credentials, subscribes to a topic, and prints each event as a line of JSON.
// subscribe TOPIC COUNT; SF_LOGIN_URL, SF_CLIENT_ID and SF_CLIENT_SECRET are in the environment.
import Glibc
import SalesforcePubSub

func environment(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

guard CommandLine.arguments.count == 3, let count = Int(CommandLine.arguments[2]),
  let loginURL = environment("SF_LOGIN_URL"), let clientID = environment("SF_CLIENT_ID"),
  let clientSecret = environment("SF_CLIENT_SECRET")
else {
  fputs("usage: SF_LOGIN_URL=… SF_CLIENT_ID=… SF_CLIENT_SECRET=… subscribe TOPIC COUNT\n", stderr)
  exit(64)
}
var configuration = SalesforcePubSubClient.Configuration(
  login: .clientCredentials(loginURL: loginURL, clientID: clientID, clientSecret: clientSecret))
if let endpoint = environment("PUBSUB_ENDPOINT") { configuration.endpoint = endpoint }
configuration.caFile = environment("PUBSUB_CA_FILE")
configuration.schemaDirectory = environment("SCHEMA_DIRECTORY")

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
  fputs("subscribe: \(error)\n", stderr)
  exit(69)
}
