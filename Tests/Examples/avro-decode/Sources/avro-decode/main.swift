// Decodes one Avro datum to JSON: avro-decode SCHEMA-FILE < DATUM
import Avro
import Foundation

func fail(_ code: Int32, _ message: String) -> Never {
  FileHandle.standardError.write(Data("\(message)\n".utf8))
  exit(code)
}

guard CommandLine.arguments.count == 2,
  let schema = FileManager.default.contents(atPath: CommandLine.arguments[1])
else { fail(64, "usage: avro-decode SCHEMA-FILE < DATUM") }
let datum = FileHandle.standardInput.readDataToEndOfFile()
do throws(AvroError) {
  // The plan and the scratch memory serve any number of data of one schema.
  let plan = try DecodePlan(try Schema(parsing: Array(schema)))
  print(try plan.json(of: Array(datum), scratch: DecodeScratch()))
} catch {
  fail(65, "avro-decode: \(error)")
}
