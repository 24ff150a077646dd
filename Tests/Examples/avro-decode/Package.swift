// swift-tools-version:6.1

import PackageDescription

let package = Package(
  name: "avro-decode",
  dependencies: [
    .package(name: "pubsub-etl", path: "../../..")
  ],
  targets: [
    .executableTarget(
      name: "avro-decode",
      dependencies: [
        .product(name: "Avro", package: "pubsub-etl")
      ])
  ]
)
