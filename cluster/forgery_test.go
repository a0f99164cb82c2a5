package cluster

import (
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// forgeries are letters that no voter sends: proposals, local messages, strangers, wrong addresses.
func forgeries(to *member) [][]byte {
	self, other, stranger := uint64(to.options.Node), uint64(voterOf(1+to.number%3).Node), uint64(999)
	var out [][]byte
	for _, m := range []*pb.Message{
		{Type: pb.MsgProp.Enum(), From: &other, To: &self, Entries: []*pb.Entry{{Data: EncodeBatch([]Record{&NoOpRecord{}})}}},
		{Type: pb.MsgHup.Enum(), From: &other, To: &self},
		{Type: pb.MsgStorageAppendResp.Enum(), From: &other, To: &self},
		{Type: pb.MsgTransferLeader.Enum(), From: &other, To: &self},
		{Type: pb.MsgReadIndex.Enum(), From: &other, To: &self},
		{Type: pb.MsgApp.Enum(), From: &stranger, To: &self, Term: new(uint64(1 << 40))},
		{Type: pb.MsgVote.Enum(), From: &stranger, To: &self, Term: new(uint64(1 << 40))},
		{Type: pb.MsgHeartbeat.Enum(), From: &self, To: &self, Term: new(uint64(1 << 40))},
		{Type: pb.MsgApp.Enum(), From: &other, To: &stranger, Term: new(uint64(1 << 40))},
		{Type: pb.MsgApp.Enum(), To: &self},
	} {
		data, err := proto.Marshal(m)
		if err != nil {
			panic(err)
		}
		out = append(out, data)
	}
	return append(out, []byte("nonsense"))
}
