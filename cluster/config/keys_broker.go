package config

// brokerKeys are all keys of a broker, by what they are about (the ConfigDefs of Kafka 4.4), and our own.
var brokerKeys = [][]Key{
	identityKeys, networkKeys, logKeys, cleanerKeys, scrubKeys, replicationKeys, coordinatorKeys, shareKeys, transactionKeys, brokerQuotaKeys, tierKeys,
	metricsKeys, securityKeys, troupeKeys, peerKeys,
}
