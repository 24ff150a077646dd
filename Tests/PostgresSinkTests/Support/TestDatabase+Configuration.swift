import PostgresClient
import PostgresSink
import TestSupport

extension TestDatabase {
  func configuration(
    _ change: (inout PostgresSinkConfiguration) -> Void = { _ in }
  ) -> PostgresSinkConfiguration {
    var configuration = PostgresSinkConfiguration(
      connection: PostgresConnectionConfiguration(url: self.url))
    change(&configuration)
    return configuration
  }
}
