package config

// securityKeys are about TLS, SASL and tokens. A listener that needs them is refused, so none of these can be relied on by mistake.
var securityKeys = []Key{
	{
		Name: "delegation.token.secret.key", Type: Password, Null: true, Class: Accepted, Hidden: true,
		Reason: noTokens,
		Doc:    "Secret by which tokens are made and checked.",
	},
	{
		Name: "delegation.token.max.lifetime.ms", Type: Long, Default: "604800000", Unit: Milliseconds, Class: Accepted, Check: atLeast(1),
		Reason: noTokens,
		Doc:    "Longest life of a token.",
	},
	{
		Name: "delegation.token.expiry.time.ms", Type: Long, Default: "86400000", Unit: Milliseconds, Class: Accepted, Check: atLeast(1),
		Reason: noTokens,
		Doc:    "Life of a token until it must be renewed.",
	},
	{
		Name: "delegation.token.expiry.check.interval.ms", Type: Long, Default: "3600000", Unit: Milliseconds, Class: Accepted, Check: atLeast(1),
		Reason: noTokens,
		Doc:    "How often expired tokens are removed.",
	},
	{
		Name: "connections.max.reauth.ms", Type: Long, Default: "0", Unit: Milliseconds, Class: Accepted, Check: atLeast(0),
		Reason: noSASL,
		Doc:    "Time after which a client must authenticate again.",
	},
	{
		Name: "sasl.server.max.receive.size", Type: Int, Default: "524288", Unit: Bytes, Class: Accepted, Check: atLeast(1),
		Reason: noSASL,
		Doc:    "Largest request before a client has authenticated.",
	},
	{
		Name: "security.providers", Type: String, Null: true, Class: Accepted,
		Reason: noTLS,
		Doc:    "Java security providers.",
	},
	{
		Name: "principal.builder.class", Type: ClassRef, Default: "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder", Class: Accepted, Update: PerBroker,
		Reason: "nobody authenticates yet, so there is one principal",
		Doc:    "Class that names the client behind a connection.",
	},
	{
		Name: "ssl.client.auth", Type: String, Default: "none", Class: Accepted, Update: PerBroker, Check: oneOf("required", "requested", "none"),
		Reason: noTLS,
		Doc:    "Whether clients must show a certificate.",
	},
	{
		Name: "ssl.principal.mapping.rules", Type: String, Default: "DEFAULT", Class: Accepted,
		Reason: noTLS,
		Doc:    "Rules that turn a certificate's name into a principal.",
	},
	{
		Name: "ssl.allow.dn.changes", Type: Bool, Default: "false", Class: Accepted,
		Reason: noTLS,
		Doc:    "Lets a renewed certificate have another distinguished name.",
	},
	{
		Name: "ssl.allow.san.changes", Type: Bool, Default: "false", Class: Accepted,
		Reason: noTLS,
		Doc:    "Lets a renewed certificate have other alternative names.",
	},
	{
		Name: "ssl.protocol", Type: String, Default: "TLSv1.3", Class: Accepted, Update: PerBroker,
		Reason: noTLS,
		Doc:    "TLS version to prefer.",
	},
	{
		Name: "ssl.provider", Type: String, Null: true, Class: Accepted, Update: PerBroker,
		Reason: noTLS,
		Doc:    "Java provider of TLS.",
	},
	{
		Name: "ssl.enabled.protocols", Type: List, Default: "TLSv1.2,TLSv1.3", Class: Accepted, Update: PerBroker,
		Reason: noTLS,
		Doc:    "TLS versions that are taken.",
	},
	{
		Name: "ssl.keystore.type", Type: String, Default: "JKS", Class: Accepted, Update: PerBroker,
		Reason: noTLS,
		Doc:    "File format of the key store.",
	},
	{
		Name: "ssl.keystore.location", Type: String, Null: true, Class: Accepted, Update: PerBroker,
		Reason: noTLS,
		Doc:    "File of the key store.",
	},
	{
		Name: "ssl.keystore.password", Type: Password, Null: true, Class: Accepted, Update: PerBroker, Hidden: true,
		Reason: noTLS,
		Doc:    "Password of the key store.",
	},
	{
		Name: "ssl.key.password", Type: Password, Null: true, Class: Accepted, Update: PerBroker, Hidden: true,
		Reason: noTLS,
		Doc:    "Password of the private key.",
	},
	{
		Name: "ssl.keystore.key", Type: Password, Null: true, Class: Accepted, Update: PerBroker, Hidden: true,
		Reason: noTLS,
		Doc:    "Private key as PEM text.",
	},
	{
		Name: "ssl.keystore.certificate.chain", Type: Password, Null: true, Class: Accepted, Update: PerBroker, Hidden: true,
		Reason: noTLS,
		Doc:    "Certificates as PEM text.",
	},
	{
		Name: "ssl.truststore.type", Type: String, Default: "JKS", Class: Accepted, Update: PerBroker,
		Reason: noTLS,
		Doc:    "File format of the trust store.",
	},
	{
		Name: "ssl.truststore.location", Type: String, Null: true, Class: Accepted, Update: PerBroker,
		Reason: noTLS,
		Doc:    "File of the trust store.",
	},
	{
		Name: "ssl.truststore.password", Type: Password, Null: true, Class: Accepted, Update: PerBroker, Hidden: true,
		Reason: noTLS,
		Doc:    "Password of the trust store.",
	},
	{
		Name: "ssl.truststore.certificates", Type: Password, Null: true, Class: Accepted, Update: PerBroker, Hidden: true,
		Reason: noTLS,
		Doc:    "Trusted certificates as PEM text.",
	},
	{
		Name: "ssl.keymanager.algorithm", Type: String, Default: "SunX509", Class: Accepted, Update: PerBroker,
		Reason: noTLS,
		Doc:    "Java algorithm that manages keys.",
	},
	{
		Name: "ssl.trustmanager.algorithm", Type: String, Default: "PKIX", Class: Accepted, Update: PerBroker,
		Reason: noTLS,
		Doc:    "Java algorithm that manages trust.",
	},
	{
		Name: "ssl.endpoint.identification.algorithm", Type: String, Default: "https", Class: Accepted, Update: PerBroker,
		Reason: noTLS,
		Doc:    "How a server's name is checked against its certificate.",
	},
	{
		Name: "ssl.secure.random.implementation", Type: String, Null: true, Class: Accepted, Update: PerBroker,
		Reason: noTLS,
		Doc:    "Java source of random numbers.",
	},
	{
		Name: "ssl.cipher.suites", Type: List, Default: "", Class: Accepted, Update: PerBroker,
		Reason: noTLS,
		Doc:    "Cipher suites that are taken.",
	},
	{
		Name: "ssl.engine.factory.class", Type: ClassRef, Null: true, Class: Accepted, Update: PerBroker,
		Reason: noTLS,
		Doc:    "Class that makes TLS engines.",
	},
	{
		Name: "sasl.mechanism.inter.broker.protocol", Type: String, Default: "GSSAPI", Class: Accepted, Update: PerBroker,
		Reason: noSASL,
		Doc:    "SASL mechanism between brokers.",
	},
	{
		Name: "sasl.enabled.mechanisms", Type: List, Default: "GSSAPI", Class: Accepted, Update: PerBroker,
		Reason: noSASL,
		Doc:    "SASL mechanisms offered to clients.",
	},
	{
		Name: "sasl.server.callback.handler.class", Type: ClassRef, Null: true, Class: Accepted, Update: PerBroker,
		Reason: noSASL,
		Doc:    "Class that checks a client's secrets.",
	},
	{
		Name: "sasl.kerberos.principal.to.local.rules", Type: List, Default: "DEFAULT", Class: Accepted, Update: PerBroker,
		Reason: noSASL,
		Doc:    "Rules that turn a Kerberos name into a principal.",
	},
	{
		Name: "sasl.jaas.config", Type: Password, Null: true, Class: Accepted, Update: PerBroker, Hidden: true,
		Reason: noSASL,
		Doc:    "Login settings in JAAS form.",
	},
	{
		Name: "sasl.client.callback.handler.class", Type: ClassRef, Null: true, Class: Accepted,
		Reason: noSASL,
		Doc:    "Class that gives the broker's own secrets.",
	},
	{
		Name: "sasl.login.class", Type: ClassRef, Null: true, Class: Accepted,
		Reason: noSASL,
		Doc:    "Class that logs the broker in.",
	},
	{
		Name: "sasl.login.callback.handler.class", Type: ClassRef, Null: true, Class: Accepted,
		Reason: noSASL,
		Doc:    "Class that gives the secrets of that login.",
	},
	{
		Name: "sasl.kerberos.service.name", Type: String, Null: true, Class: Accepted, Update: PerBroker,
		Reason: noSASL,
		Doc:    "Kerberos name the broker runs as.",
	},
	{
		Name: "sasl.kerberos.kinit.cmd", Type: String, Default: "/usr/bin/kinit", Class: Accepted, Update: PerBroker,
		Reason: noSASL,
		Doc:    "The kinit command.",
	},
	{
		Name: "sasl.kerberos.ticket.renew.window.factor", Type: Double, Default: "0.8", Class: Accepted, Update: PerBroker, Check: ratio,
		Reason: noSASL,
		Doc:    "Share of a ticket's life after which it is renewed.",
	},
	{
		Name: "sasl.kerberos.ticket.renew.jitter", Type: Double, Default: "0.05", Class: Accepted, Update: PerBroker, Check: ratio,
		Reason: noSASL,
		Doc:    "Random share added to that.",
	},
	{
		Name: "sasl.kerberos.min.time.before.relogin", Type: Long, Default: "60000", Unit: Milliseconds, Class: Accepted, Update: PerBroker, Check: atLeast(0),
		Reason: noSASL,
		Doc:    "Pause between two renewals.",
	},
	{
		Name: "sasl.login.refresh.window.factor", Type: Double, Default: "0.8", Class: Accepted, Update: PerBroker, Check: ratio,
		Reason: noSASL,
		Doc:    "Share of a credential's life after which it is refreshed.",
	},
	{
		Name: "sasl.login.refresh.window.jitter", Type: Double, Default: "0.05", Class: Accepted, Update: PerBroker, Check: ratio,
		Reason: noSASL,
		Doc:    "Random share added to that.",
	},
	{
		Name: "sasl.login.refresh.min.period.seconds", Type: Short, Default: "60", Unit: Seconds, Class: Accepted, Update: PerBroker, Check: between(0, 900),
		Reason: noSASL,
		Doc:    "Least time before a credential is refreshed.",
	},
	{
		Name: "sasl.login.refresh.buffer.seconds", Type: Short, Default: "300", Unit: Seconds, Class: Accepted, Update: PerBroker, Check: between(0, 3600),
		Reason: noSASL,
		Doc:    "Time to leave before a credential expires.",
	},
	{
		Name: "sasl.login.connect.timeout.ms", Type: Int, Null: true, Unit: Milliseconds, Class: Accepted, Check: atLeast(0),
		Reason: noSASL,
		Doc:    "How long to wait for a connection to the identity provider.",
	},
	{
		Name: "sasl.login.read.timeout.ms", Type: Int, Null: true, Unit: Milliseconds, Class: Accepted, Check: atLeast(0),
		Reason: noSASL,
		Doc:    "How long to wait for the identity provider's answer.",
	},
	{
		Name: "sasl.login.retry.backoff.max.ms", Type: Long, Default: "10000", Unit: Milliseconds, Class: Accepted, Check: atLeast(0),
		Reason: noSASL,
		Doc:    "Longest pause between two logins.",
	},
	{
		Name: "sasl.login.retry.backoff.ms", Type: Long, Default: "100", Unit: Milliseconds, Class: Accepted, Check: atLeast(0),
		Reason: noSASL,
		Doc:    "First pause between two logins.",
	},
	{
		Name: "sasl.oauthbearer.jwt.retriever.class", Type: ClassRef, Default: "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever", Class: Accepted,
		Reason: noSASL,
		Doc:    "Class that fetches tokens.",
	},
	{
		Name: "sasl.oauthbearer.jwt.validator.class", Type: ClassRef, Default: "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator", Class: Accepted,
		Reason: noSASL,
		Doc:    "Class that checks tokens.",
	},
	{
		Name: "sasl.oauthbearer.scope", Type: String, Null: true, Class: Accepted,
		Reason: noSASL,
		Doc:    "Access to ask for with a token.",
	},
	{
		Name: "sasl.oauthbearer.client.credentials.client.id", Type: String, Null: true, Class: Accepted,
		Reason: noSASL,
		Doc:    "Name of this client at the identity provider.",
	},
	{
		Name: "sasl.oauthbearer.client.credentials.client.secret", Type: Password, Null: true, Class: Accepted, Hidden: true,
		Reason: noSASL,
		Doc:    "Secret of this client at the identity provider.",
	},
	{
		Name: "sasl.oauthbearer.assertion.algorithm", Type: String, Default: "RS256", Class: Accepted,
		Reason: noSASL,
		Doc:    "How a token that is made here is signed.",
	},
	{
		Name: "sasl.oauthbearer.assertion.claim.aud", Type: String, Null: true, Class: Accepted,
		Reason: noSASL,
		Doc:    "Audience of a token that is made here.",
	},
	{
		Name: "sasl.oauthbearer.assertion.claim.exp.seconds", Type: Int, Default: "300", Unit: Seconds, Class: Accepted, Check: between(0, 86400),
		Reason: noSASL,
		Doc:    "Life of a token that is made here.",
	},
	{
		Name: "sasl.oauthbearer.assertion.claim.iss", Type: String, Null: true, Class: Accepted,
		Reason: noSASL,
		Doc:    "Issuer of a token that is made here.",
	},
	{
		Name: "sasl.oauthbearer.assertion.claim.jti.include", Type: Bool, Default: "false", Class: Accepted,
		Reason: noSASL,
		Doc:    "Give a token that is made here an id of its own.",
	},
	{
		Name: "sasl.oauthbearer.assertion.claim.nbf.seconds", Type: Int, Default: "60", Unit: Seconds, Class: Accepted, Check: between(0, 3600),
		Reason: noSASL,
		Doc:    "How far back a token that is made here begins to be valid.",
	},
	{
		Name: "sasl.oauthbearer.assertion.claim.sub", Type: String, Null: true, Class: Accepted,
		Reason: noSASL,
		Doc:    "Subject of a token that is made here.",
	},
	{
		Name: "sasl.oauthbearer.assertion.file", Type: String, Null: true, Class: Accepted,
		Reason: noSASL,
		Doc:    "File of a token made elsewhere.",
	},
	{
		Name: "sasl.oauthbearer.assertion.private.key.file", Type: String, Null: true, Class: Accepted,
		Reason: noSASL,
		Doc:    "File of the key that signs tokens.",
	},
	{
		Name: "sasl.oauthbearer.assertion.private.key.passphrase", Type: Password, Null: true, Class: Accepted, Hidden: true,
		Reason: noSASL,
		Doc:    "Passphrase of that key.",
	},
	{
		Name: "sasl.oauthbearer.assertion.template.file", Type: String, Null: true, Class: Accepted,
		Reason: noSASL,
		Doc:    "File with headers and claims of tokens to make.",
	},
	{
		Name: "sasl.oauthbearer.scope.claim.name", Type: String, Default: "scope", Class: Accepted,
		Reason: noSASL,
		Doc:    "Claim of a token that holds its scope.",
	},
	{
		Name: "sasl.oauthbearer.sub.claim.name", Type: String, Default: "sub", Class: Accepted,
		Reason: noSASL,
		Doc:    "Claim of a token that holds its subject.",
	},
	{
		Name: "sasl.oauthbearer.token.endpoint.url", Type: String, Null: true, Class: Accepted,
		Reason: noSASL,
		Doc:    "Address at which tokens are fetched.",
	},
	{
		Name: "sasl.oauthbearer.jwks.endpoint.url", Type: String, Null: true, Class: Accepted,
		Reason: noSASL,
		Doc:    "Address of the keys by which tokens are checked.",
	},
	{
		Name: "sasl.oauthbearer.jwks.endpoint.refresh.ms", Type: Long, Default: "3600000", Unit: Milliseconds, Class: Accepted,
		Reason: noSASL,
		Doc:    "How often those keys are fetched again.",
	},
	{
		Name: "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", Type: Long, Default: "100", Unit: Milliseconds, Class: Accepted,
		Reason: noSASL,
		Doc:    "First pause after failing to fetch them.",
	},
	{
		Name: "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", Type: Long, Default: "10000", Unit: Milliseconds, Class: Accepted,
		Reason: noSASL,
		Doc:    "Longest pause after failing to fetch them.",
	},
	{
		Name: "sasl.oauthbearer.clock.skew.seconds", Type: Int, Default: "30", Unit: Seconds, Class: Accepted,
		Reason: noSASL,
		Doc:    "Difference of clocks that is forgiven.",
	},
	{
		Name: "sasl.oauthbearer.allow.unverified.audience", Type: Bool, Default: "false", Class: Accepted,
		Reason: noSASL,
		Doc:    "Take tokens whose audience is not checked.",
	},
	{
		Name: "sasl.oauthbearer.expected.audience", Type: List, Default: "", Class: Accepted,
		Reason: noSASL,
		Doc:    "Audiences a token may be for.",
	},
	{
		Name: "sasl.oauthbearer.allow.unverified.issuer", Type: Bool, Default: "false", Class: Accepted,
		Reason: noSASL,
		Doc:    "Take tokens whose issuer is not checked.",
	},
	{
		Name: "sasl.oauthbearer.expected.issuer", Type: String, Null: true, Class: Accepted,
		Reason: noSASL,
		Doc:    "Issuer a token must be from.",
	},
}

// Reasons that several keys share.
const (
	noTLS    = "TLS does not exist yet; a listener that needs it is refused"
	noSASL   = "SASL does not exist yet; a listener that needs it is refused"
	noTokens = "delegation tokens do not exist yet"
)
