import JSON

/// The logins that a pipeline file can name. To add one, add its line.
enum LoginRegistry {
  static var types: [any Login.Type] {
    [
      ClientCredentialsLogin.self,
      JWTBearerLogin.self,
      RefreshTokenLogin.self,
      SalesforceCLILogin.self,
      TokenLogin.self,
    ]
  }
}

extension Kind<any Login> {
  static var login: Self {
    let types = LoginRegistry.types
    return Self(
      .oneOf(types.map { .object($0.allDeclarations) }), objects: types.map { $0.allDeclarations },
      example: { _ in
        [
          "type": "client_credentials", "login_url": "https://acme.my.salesforce.com",
          "client_id": "${SF_CLIENT_ID}", "client_secret": "${SF_CLIENT_SECRET}",
        ]
      },
      read: { reader, name, isRequired in
        guard let object = reader.object(name, required: isRequired),
          let word = object.string("type", required: true)
        else { return nil }
        guard let type = types.first(where: { $0.type == word }) else {
          object.reportUnknown(
            "type", word, called: "login", known: types.map { $0.type }, page: "Logins.md")
          return nil
        }
        return type.read(object)
      })
  }
}
