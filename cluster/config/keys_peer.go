package config

// peerKeys are about the other brokers of the cluster: how it is founded, where they are, who may speak as one.
var peerKeys = []Key{
	{
		Name: "bootstrap.expect", Type: Int, Default: "-1", Class: Honoured, Check: founders,
		Doc: "Brokers that found the cluster together and vote in it: 1, 3 or 5, the same on each of them. -1 is 1 without join; with join this broker founds nothing and waits until it finds a cluster. Without effect once the directory belongs to one.",
	},
	{
		Name: "join", Type: List, Default: "", Class: Honoured, Check: hostPorts,
		Doc: "Peer addresses, host:port, at which other brokers of the cluster may be found. The list may be the same everywhere; names are looked up again at each attempt.",
	},
	{
		Name: "peer.listen", Type: String, Default: "", Class: Honoured, Check: hostPort,
		Doc: "Address for other brokers, TCP and UDP of one number; empty opens none. Port 0 takes any free one.",
	},
	{
		Name: "peer.advertise", Type: String, Default: "", Class: Honoured, Check: hostPort,
		Doc: "Address that other brokers are told to connect to; empty is that of peer.listen. Port 0 is the one that is open.",
	},
	{
		Name: "peer.insecure", Type: Bool, Default: "false", Class: Honoured,
		Doc: "Opens a peer port that others than this machine reach without gossip.keys and peer.tls. Whoever reaches it can speak as a broker. Warned about at each start.",
	},
	{
		Name: "peer.tls.certificate", Type: String, Default: "", Class: Honoured,
		Doc: "PEM file with this broker's certificate for other brokers. With peer.tls.key and peer.tls.ca, or none of them.",
	},
	{
		Name: "peer.tls.key", Type: String, Default: "", Class: Honoured,
		Doc: "PEM file with the private key of peer.tls.certificate.",
	},
	{
		Name: "peer.tls.ca", Type: String, Default: "", Class: Honoured,
		Doc: "PEM file with the certificates of those who issue certificates for brokers.",
	},
	{
		Name: "gossip.keys", Type: Password, Default: "", Class: Honoured, Hidden: true, Check: keyList,
		Doc: "Keys of gossip in base64, separated by commas, of 16, 24 or 32 bytes each. The first seals, all of them open.",
	},
	{
		Name: "gossip.label", Type: String, Default: "troupe", Class: Honoured, Check: gossipLabel,
		Doc: "Word that brokers must have in common to hear each other's gossip: another one keeps clusters in one network apart.",
	},
}

// linkTimes is a reason that several keys share.
const linkTimes = "the times of connections between brokers are fixed: docs/errors.md has them at TRP-3301 and TRP-3302"
