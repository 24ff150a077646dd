// Decodes one Avro datum to JSON: avro-decode SCHEMA-FILE < DATUM
import Avro
import Glibc

func bytes(of file: UnsafeMutablePointer<FILE>) -> [UInt8] {
  var content: [UInt8] = []
  while case let byte = getc(file), byte != EOF { content.append(UInt8(byte)) }
  return content
}

guard CommandLine.arguments.count == 2, let file = fopen(CommandLine.arguments[1], "r"),
  let input = fdopen(STDIN_FILENO, "r")
else {
  fputs("usage: avro-decode SCHEMA-FILE < DATUM\n", stderr)
  exit(64)
}
do throws(AvroError) {
  // The plan and the scratch memory serve any number of data of one schema.
  let plan = try DecodePlan(try Schema(parsing: bytes(of: file)))
  print(try plan.json(of: bytes(of: input), scratch: DecodeScratch()))
} catch {
  fputs("avro-decode: \(error)\n", stderr)
  exit(65)
}
