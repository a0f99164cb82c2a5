package store

type segmentFile struct{}
type slot struct{}
