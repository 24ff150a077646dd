// swift-tools-version:6.1

import PackageDescription

let package = Package(
  name: "grpc-over-tls",
  dependencies: [
    .package(name: "pubsub-etl", path: "../../.."),
    .package(url: "https://github.com/grpc/grpc-swift-2", exact: "2.4.3"),
  ],
  targets: [
    .executableTarget(
      name: "grpc-over-tls",
      dependencies: [
        .product(name: "GRPCHTTP2", package: "pubsub-etl"),
        .product(name: "GRPCCore", package: "grpc-swift-2"),
      ])
  ]
)
