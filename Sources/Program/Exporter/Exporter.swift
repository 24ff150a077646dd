import PubSubETL

/// `pubsub-etl`.
@main
enum Exporter {
  static func main() { Main.run() }
}
