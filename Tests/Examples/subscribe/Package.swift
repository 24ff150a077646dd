// swift-tools-version:6.1

import PackageDescription

let package = Package(
  name: "subscribe",
  dependencies: [
    .package(name: "pubsub-etl", path: "../../..")
  ],
  targets: [
    .executableTarget(
      name: "subscribe",
      dependencies: [
        .product(name: "SalesforcePubSub", package: "pubsub-etl")
      ])
  ]
)
