import ArgumentParser
import PubSubSimulator

struct TopicsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "topics", abstract: "Lists the topics that can be served.")

  func run() {
    for name in SimulatorServer.topicNames { print(name) }
  }
}
