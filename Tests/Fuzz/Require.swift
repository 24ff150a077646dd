/// As `precondition`, whose message an optimised build leaves out.
func require(_ condition: Bool, _ message: @autoclosure () -> String) {
  if !condition { fatalError(message()) }
}
