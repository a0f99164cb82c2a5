package broker

// Codes of what an operator or a client's author is told; docs/errors.md explains each.
const (
	codeDirectoryLost  = "TRP-2101" // a data directory went offline
	codeReplicaOffline = "TRP-2102" // a replica is offline
	codeDamage         = "TRP-2103" // damaged records were found
	codeDiskFull       = "TRP-2104" // produce refused: no space
	codeGroupLoad      = "TRP-2105" // the groups of a partition cannot be loaded
	codeGroupAppend    = "TRP-2106" // group records could not be committed
	codeGroupRecord    = "TRP-2107" // a group record cannot be read
	codeReplicaDamage  = "TRP-2108" // damaged records came from a leader
	codeCommittedCut   = "TRP-2109" // a replica gave up committed records
	codeSyncHung       = "TRP-2110" // a sync of a log hangs
	codeBadAnswer      = "TRP-2111" // a leader's answer that makes no sense
	codeDivergence     = "TRP-2112" // a replica and its leader differ
	codeMetadataLost   = "TRP-4101" // the metadata log is missing or cannot be written
	codeUnclean        = "TRP-4102" // a leader that may miss records
	codeRegistration   = "TRP-4103" // the controller refuses the broker
	codeSupplanted     = "TRP-4106" // another process is this broker now
	codeAlone          = "TRP-4104" // a broker of a cluster was started without a peer port
	codeFounded        = "TRP-4105" // a promise that is kept cannot be forgotten
	codeSilentRefusal  = "TRP-3101" // an acks=0 write was refused
	codeStalledRead    = "TRP-3102" // a request stopped arriving while others wait for memory
	codeStalledWrite   = "TRP-3103" // the peer takes no answer
	codeIdle           = "TRP-3104" // idle too long
	codeTooMany        = "TRP-3105" // too many connections
	codeTooManyPerIP   = "TRP-3106" // too many connections of one address
	codeDescriptors    = "TRP-3107" // file descriptors are short
	codeBlamed         = "TRP-5101" // a replica is offline after three crashes
	codeProduceFull    = "TRP-5011" // too many parked produces
	codeFetchFull      = "TRP-5012" // too many parked fetches
	codeProducersFull  = "TRP-5013" // too many idempotent producers
)
