package config

var brokerKeys = [][]Key{}
var groupKeys, clientMetricsKeys, quotaKeys []Key
