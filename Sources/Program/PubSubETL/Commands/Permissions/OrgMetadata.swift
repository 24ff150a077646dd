internal import Bytes

/// The files with which an org is prepared for a pipeline: a permission set, and an External Client App
/// for its login. In the source format of the Salesforce CLI.
struct OrgMetadata {
  struct File: Equatable {
    /// Relative to the output directory.
    var path: String
    var text: String
  }

  /// API name of the permission set and of the app.
  let name: String
  let files: [File]
  /// What remains to be done by hand, and what to know; one sentence each.
  let remarks: [String]

  /// `viewAllFields` of object permissions needs 63.0.
  private static let apiVersion = "66.0"
  private static let folder = "force-app/main/default"

  /// - Parameters:
  ///   - contact: e-mail address that the app shows.
  ///   - certificate: PEM of the app's certificate, for JWT bearer; nil when it is uploaded by hand.
  init(_ configuration: PipelineConfiguration, contact: String, certificate: String?) {
    let name = Self.apiName(configuration.name)
    let label = "pubsub-etl \(configuration.name)"
    let rights = PipelineRights(configuration)
    var files = [
      File(
        path: "sfdx-project.json",
        text: """
          {
            "packageDirectories": [{ "path": "force-app", "default": true }],
            "sourceApiVersion": "\(Self.apiVersion)"
          }

          """),
      Self.file(
        "permissionsets/\(name).permissionset", Self.permissionSet(rights, label: label)),
    ]
    var remarks = rights.remarks
    if let app = configuration.source.org.auth.app {
      files += Self.app(
        name: name, label: label, app: app, contact: contact, certificate: certificate)
      remarks += app.remarks(name: name, hasCertificate: certificate != nil)
    } else {
      remarks.append("the login of this pipeline needs no app of its own, so none is written")
    }
    (self.name, self.files, self.remarks) = (name, files, remarks)
  }

  /// Letters, digits and single underscores, a letter first, no underscore last; 60 characters.
  static func apiName(_ pipeline: String) -> String {
    let words = pipeline.utf8.split { !$0.isAlphanumeric }
    let text = (["pubsub_etl"] + words.map { String(decoding: $0, as: UTF8.self) })
      .joined(separator: "_").prefix(60)
    return String(text.last == "_" ? text.dropLast() : text)
  }

  private static func file(_ path: String, _ root: MetadataElement) -> File {
    File(path: "\(Self.folder)/\(path)-meta.xml", text: root.document)
  }

  private static func permissionSet(_ rights: PipelineRights, label: String) -> MetadataElement {
    // Elements in alphabetical order, as the org returns them.
    var elements = [
      MetadataElement(
        "description",
        "Reads what the pipeline exports, and nothing else; written by pubsub-etl permissions."),
      MetadataElement("hasActivationRequired", false), MetadataElement("label", label),
    ]
    for object in rights.objects {
      elements.append(
        MetadataElement(
          "objectPermissions",
          [
            MetadataElement("allowCreate", false), MetadataElement("allowDelete", false),
            MetadataElement("allowEdit", false), MetadataElement("allowRead", true),
            MetadataElement("modifyAllRecords", false), MetadataElement("object", object.name),
            MetadataElement("viewAllFields", object.viewsAll),
            MetadataElement("viewAllRecords", object.viewsAll),
          ]))
    }
    for permission in rights.userPermissions {
      elements.append(
        MetadataElement(
          "userPermissions",
          [MetadataElement("enabled", true), MetadataElement("name", permission)]))
    }
    return MetadataElement("PermissionSet", elements)
  }

  private static func app(
    name: String, label: String, app: App, contact: String, certificate: String?
  ) -> [File] {
    func named(_ elements: MetadataElement...) -> [MetadataElement] {
      [MetadataElement("externalClientApplication", name)] + elements
    }
    let usesCertificate = app == .jwtBearer ? certificate : nil
    var files = [
      self.file(
        "externalClientApps/\(name).eca",
        MetadataElement(
          "ExternalClientApplication",
          [
            MetadataElement("contactEmail", contact),
            MetadataElement("description", "Exports records and change events (read only)."),
            MetadataElement("distributionState", "Local"), MetadataElement("isProtected", false),
            MetadataElement("label", label),
          ])),
      self.file(
        "extlClntAppGlobalOauthSets/\(name)_glbloauth.ecaGlblOauth",
        MetadataElement(
          "ExtlClntAppGlobalOauthSettings",
          [
            MetadataElement(
              "callbackUrl", "https://login.salesforce.com/services/oauth2/success")
          ] + (usesCertificate.map { [MetadataElement("certificate", $0)] } ?? [])
            + named(
              MetadataElement("isClientCredentialsFlowEnabled", app == .clientCredentials),
              MetadataElement("isConsumerSecretOptional", false),
              MetadataElement("isIntrospectAllTokens", false),
              MetadataElement("isPkceRequired", true),
              MetadataElement("isRefreshTokenRotationEnabled", app == .refreshToken),
              MetadataElement("isSecretRequiredForRefreshToken", true),
              MetadataElement("label", "\(name)_glbloauth"),
              MetadataElement("shouldRotateConsumerKey", false),
              MetadataElement("shouldRotateConsumerSecret", false)))),
      self.file(
        "extlClntAppOauthSettings/\(name)_oauth.ecaOauth",
        MetadataElement(
          "ExtlClntAppOauthSettings",
          [
            MetadataElement(
              "commaSeparatedOauthScopes", app == .clientCredentials ? "Api" : "Api, RefreshToken")
          ] + named(MetadataElement("label", "\(name)_oauth")))),
    ]
    // That of client credentials names the run-as user, which differs from org to org.
    if app != .clientCredentials {
      files.append(
        self.file(
          "extlClntAppOauthPolicies/\(name)_oauthPlcy.ecaOauthPlcy",
          MetadataElement(
            "ExtlClntAppOauthConfigurablePolicies",
            [MetadataElement("commaSeparatedPermissionSet", name)]
              + named(
                MetadataElement("ipRelaxationPolicyType", "Enforce"),
                MetadataElement("label", "\(name)_oauthPlcy"),
                MetadataElement("permittedUsersPolicyType", "AdminApprovedPreAuthorized")))))
    }
    return files
  }
}

extension OrgMetadata {
  /// The flows for which an app of the org is made.
  enum App {
    case clientCredentials, jwtBearer, refreshToken

    fileprivate func remarks(name: String, hasCertificate: Bool) -> [String] {
      switch self {
      case .clientCredentials:
        [
          "after deploying, choose the run-as user in Setup > External Client App Manager > \(name) > "
            + "Policies > OAuth Policies > Enable Client Credentials Flow: it cannot be deployed",
          "copy consumer key and secret from Settings > OAuth Settings",
        ]
      case .jwtBearer:
        (hasCertificate
          ? []
          : [
            "give the certificate with --certificate FILE, or upload it in Settings > OAuth Settings "
              + "> Enable JWT Bearer Flow"
          ]) + ["copy the consumer key from Settings > OAuth Settings"]
      case .refreshToken:
        [
          "the app replaces refresh tokens with every use, so use refresh_token_file",
          "copy consumer key and secret from Settings > OAuth Settings",
        ]
      }
    }
  }
}
