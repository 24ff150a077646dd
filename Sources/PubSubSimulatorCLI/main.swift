print("pubsub-simulator")
