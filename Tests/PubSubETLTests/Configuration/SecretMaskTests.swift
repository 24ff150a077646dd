import JSON
import PostgresClient
import Testing

@testable import PubSubETL

@Suite("Secrets of the configuration")
struct SecretMaskTests {
  @Test(
    "Every part into which a password may be split is hidden, and nothing else",
    arguments: [
      ("postgresql://etl:c4naryPart1@c4naryPart2@db.example/x", ["c4naryPart1", "c4naryPart2"]),
      ("postgresql://etl:top@c4naryPart@db.example/x", ["c4naryPart"]),
      ("postgresql://etl:c4nary1/c4nary2@db.example/x", ["c4nary1", "c4nary2"]),
      ("postgresql://etl:c4nary1?c4nary2=c4nary3@db.example/x", ["c4nary1", "c4nary2", "c4nary3"]),
      ("postgresql://etl:c4n%2Fry@db.example/x", ["c4n%2Fry", "c4n/ry"]),
      ("postgresql://etl@db.example/x?password=c4nary&sslmode=require", ["c4nary"]),
      ("host=db.example user=etl password='c4nary one' dbname=x", ["c4nary one"]),
      ("host=db.example password=c4nary1 c4nary2=", ["c4nary1"]),
      ("http://me:c4nary@db.example:3128", ["c4nary", "bWU6YzRuYXJ5"]),
    ])
  func passwords(url: String, secrets: [String]) {
    let mask = SecretMask()
    mask.add(passwordsOf: url)
    for secret in secrets {
      #expect(!mask.redacted("could not translate host name \"\(secret)@db\"").contains(secret))
    }
    #expect(mask.redacted("etl at db.example, database x") == "etl at db.example, database x")
  }

  @Test("A secret is hidden as a peer writes it in a URL and in JSON")
  func forms() {
    let mask = SecretMask()
    mask.add(#"ab"cd\ef/g"#)
    for text in [#"ab"cd\ef/g"#, "ab%22cd%5Cef%2Fg", #"ab\"cd\\ef/g"#] {
      #expect(mask.redacted("<\(text)>") == "<<redacted>>")
    }
  }

  @Test("Secrets within other secrets are hidden completely, and short ones are not hidden")
  func overlapping() {
    let mask = SecretMask()
    for secret in ["inner", "outer-inner-outer", "abc"] { mask.add(secret) }
    #expect(mask.redacted("outer-inner-outer inner abc") == "<redacted> <redacted> abc")
  }

  @Test(
    "A secret is hidden, whatever text surrounds it",
    arguments: ["\u{301}", "\u{200D}x", "\u{FE0F}", "\n", "\r\n", "é", "c", "\u{0}"])
  func neighbors(neighbor: String) {
    let mask = SecretMask()
    mask.add("c4nary89\r")
    mask.add("se\u{301}crét89")
    #expect(
      mask.redacted("a\(neighbor)c4nary89\r\(neighbor)se\u{301}crét89\(neighbor)")
        == "a\(neighbor)<redacted>\(neighbor)<redacted>\(neighbor)")
    #expect(mask.redacted("c4nary89\rc4nary89\r") == "<redacted><redacted>")
    #expect(mask.redacted("") == "")
  }

  @Test(
    "A word of a message or a part of a path that equals a short secret is shown",
    arguments: [
      ("word", "the user or password contains '@'"), ("pass", "the user or password contains '/'"),
      ("password", "the user or password contains '@'"), ("state", "files in /srv/etl/state"),
      ("word", "/tmp/words-url/word.json:1:2: unknown key"), ("opps", "files in out/opps/2026"),
      ("pubsub-etl", "/var/lib/pubsub-etl is not a directory"),
      ("pubsub-etl-7a9c31", "run 'pubsub-etl run'"),
    ])
  func chance(secret: String, text: String) {
    let mask = SecretMask()
    mask.add(passwordsOf: "postgresql://u:\(secret)@h/d")
    mask.add(secret)
    #expect(mask.redacted(text) == text)
  }

  @Test(
    "A short secret is hidden in a quoted URL and as a word of its own",
    arguments: [
      #"could not translate host name "word@db" to address"#, "http://word@db/x", "etl:word@db",
      "12/word@db", "/12/word%40db", "invalid token: word", "'word'", "word",
    ])
  func words(text: String) {
    let mask = SecretMask()
    mask.add("word")
    #expect(mask.redacted(text) == text.replacing("word", with: "<redacted>"))
  }

  /// Services and proxies quote what they were sent, and every limit of a message may divide it.
  @Test("A truncated secret is hidden if at least half of it remains", arguments: [9, 40, 112])
  func cut(length: Int) {
    let mask = SecretMask()
    let digits = Array("0123456789abcdefghijk")
    let secret = String((0..<length).map { digits[$0 * $0 % digits.count] })
    mask.add(secret)
    for count in 0...length {
      let beginning = String(secret.prefix(count))
      let isHidden = count >= max(8, length / 2)
      #expect(mask.redacted("'\(beginning)…") == "'\(isHidden ? "<redacted>" : beginning)…")
      #expect(mask.redacted(beginning) == (isHidden ? "<redacted>" : beginning))
    }
  }

  @Test("A secret that begins like another one is hidden completely")
  func commonBeginnings() {
    let mask = SecretMask()
    for secret in ["beginning-one", "beginning-of-another-secret"] { mask.add(secret) }
    #expect(
      mask.redacted("beginning-one beginning-of-another-secret beginning")
        == "<redacted> <redacted> <redacted>")
  }

  @Test("A document's secrets are found whatever their source")
  func document() throws {
    let sample = try SamplePipeline()
    let text = SamplePipeline.minimal
      .replacing("\"auth\"", with: "\"proxy\": {\"url\": \"${MY_PROXY}\"}, \"auth\"")
      .replacing("\"sinks\": [", with: "\"sinks\": [{\"type\":\"postgres\",\"url\":\"${DB}\"},")
    let configuration = try sample.load(
      text,
      environment: [
        "SECRET": "c4nary-secret", "MY_PROXY": "http://u:c4nary-proxy@p:1",
        "DB": "postgresql://u:c4nary-db@h/d", "PGPASSWORD": "c4nary-variable",
      ])
    let said = "c4nary-secret c4nary-proxy c4nary-db c4nary-variable"
    #expect(
      configuration.secrets.redacted(said)
        == Array(repeating: "<redacted>", count: 4).joined(separator: " "))
  }

  /// Each puts a secret where a message might quote it.
  @Test(
    "No mistake quotes a value that may be a secret",
    arguments: [
      ("\"auth\"", "\"proxy\": \"http://u:c4nary@proxy:3128\", \"auth\""),
      ("\"auth\"", "\"proxy\": \"${C}\", \"auth\""),
      ("\"auth\"", "\"proxy\": {\"url\": \"socks5://u:c4nary@p:1\"}, \"auth\""),
      ("\"auth\"", "\"endpoint\": \"https://u:c4nary@h\", \"auth\""),
      ("\"type\": \"files\"", "\"type\": \"${C}\""),
      ("\"type\": \"client_credentials\"", "\"type\": \"${C}\""),
      ("\"version\": 1", "\"version\": \"${N}\""),
      ("\"version\": 1", "\"version\": 1, \"run\": {\"fail_on\": [\"${C}\"]}"),
      ("\"version\": 1", "\"version\": 1, \"stages\": [{\"type\": \"${C}\"}]"),
      ("${SECRET}", "a${c4nary}b"),
      ("${SECRET}", "a${c4nary!}b"),
      ("https://acme.my.salesforce.com", "https://u:c4nary@acme.my.salesforce.com"),
      ("\"type\": \"files\"", "\"type\": \"postgres\", \"url\": \"postgresql://e:top@c4nary@h/d\""),
      ("\"type\": \"files\"", "\"type\": \"postgres\", \"url\": \"postgresql://e:c4nary/x@h/d\""),
      ("\"type\": \"files\"", "\"type\": \"postgres\", \"url\": \"postgresql://e:c4nary\""),
      (
        "\"type\": \"files\"",
        "\"type\": \"postgres\", \"url\": \"postgresql://e:1/c4nary?host=c4nary@h/d\""
      ),
    ])
  func mistakes(part: String, replacement: String) throws {
    let sample = try SamplePipeline()
    let mistakes = try sample.mistakes(
      SamplePipeline.minimal.replacing(part, with: replacement),
      environment: ["C": "c4nary", "N": "987654321"])
    #expect(!mistakes.isEmpty)
    for mistake in mistakes {
      #expect(!mistake.contains("c4nary") && !mistake.contains("987654321"), "\(mistake)")
    }
  }

  @Test("An address with a user is refused on the command line")
  func override() {
    for argument in [
      "source.org.proxy=http://u:c4nary@p", "source.org.endpoint=https://u:c4nary@h",
      "source.org.proxy={\"url\":\"http://p\"}",
    ] {
      let error = #expect(throws: ConfigurationOverride.ParseError.self) {
        try ConfigurationOverride(argument)
      }
      #expect(error?.description.contains("c4nary") == false)
    }
    #expect(throws: Never.self) { try ConfigurationOverride("source.org.proxy=none") }
  }
}

@Suite("Database URLs")
struct DatabaseURLTests {
  @Test(
    "A password that libpq would split is refused with the remedy",
    arguments: [
      ("postgresql://etl:top@SECRET@host/db", "%40"), ("postgres://a:b@c@d", "%40"),
      ("postgresql://etl:a/SECRET@host/db", "%2F"), ("postgresql://etl:SECRET", "port"),
      ("postgresql://etl:1/a?host=SECRET@host/db", "%XX"),
      ("postgresql://h:99999/db", "port"), ("nonsense", "libpq"),
    ])
  func refuses(url: String, remedy: String) {
    let mistake = PostgresConnectionConfiguration.mistake(in: url)
    #expect(mistake?.contains(remedy) == true)
    #expect(mistake?.contains("SECRET") == false)
  }

  @Test(
    "A URL that libpq reads as intended is accepted",
    arguments: [
      "", "postgresql://", "postgresql://etl:p%40ss@host:5432/db?sslmode=verify-full",
      "postgresql://a@h1:1,h2:2/db", "postgresql://[::1]:5432/db",
      "postgres:///db?host=/run&user=a@b", "postgres:///db?host=@abstract,@other",
      "host=h password='a b@c/d' dbname=d",
    ])
  func accepts(url: String) {
    #expect(PostgresConnectionConfiguration.mistake(in: url) == nil)
  }
}
