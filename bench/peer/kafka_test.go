package peer

import (
	"context"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestThePomPinsTheVersionWeName(t *testing.T) {
	var project struct {
		Dependencies []struct {
			GroupID string `xml:"groupId"`
			Version string `xml:"version"`
		} `xml:"dependencies>dependency"`
	}
	if err := xml.Unmarshal(pom, &project); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, d := range project.Dependencies {
		if d.GroupID != "org.apache.kafka" {
			continue
		}
		found++
		if d.Version != KafkaVersion {
			t.Errorf("pom.xml pins Kafka %s, KafkaVersion is %s", d.Version, KafkaVersion)
		}
	}
	if found != 2 {
		t.Errorf("pom.xml has %d Kafka artifacts, want the server and the tools", found)
	}
}

func TestPropertiesAreSortedAndWinByTheCaller(t *testing.T) {
	got := string(propertiesFile(map[string]string{"b": `C:\x`, "a": "1"}))
	if want := "a=1\nb=C:\\\\x\n"; got != want {
		t.Errorf("propertiesFile = %q, want %q", got, want)
	}
}

func TestEveryProfileIsFoundByItsName(t *testing.T) {
	for _, p := range []Profile{Stock, Tuned, Small} {
		if got, err := ProfileNamed(p.Name); err != nil || got.HeapMB != p.HeapMB {
			t.Errorf("ProfileNamed(%q) = %+v, %v", p.Name, got, err)
		}
	}
	if _, err := ProfileNamed("warp"); err == nil || !strings.Contains(err.Error(), "stock, tuned, small") {
		t.Errorf("an unknown profile: %v, want an error with the known names", err)
	}
}

func TestFreePortsDiffer(t *testing.T) {
	ports, err := FreePorts(8)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, p := range ports {
		if seen[p] {
			t.Errorf("port %d twice in %v", p, ports)
		}
		seen[p] = true
	}
}

func TestReadyMeansThatItAnswersNotThatItListens(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	})
	// The first two connections are dropped unanswered, as by a broker that listens and does not serve yet.
	served := make(chan int, 1)
	go func() {
		dropped := 0
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			var request [4 + 2 + 2 + 4 + 2 + 5]byte
			if _, err := io.ReadFull(conn, request[:]); err == nil && dropped == 2 {
				answer := binary.BigEndian.AppendUint32(nil, 6)
				answer = append(answer, request[8:12]...)
				answer = binary.BigEndian.AppendUint16(answer, 0)
				if _, err := conn.Write(answer); err == nil {
					served <- dropped
				}
			} else {
				dropped++
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		}
	}()
	p := shell(t, "sleep 60", time.Second)
	if err := AwaitReady(context.Background(), p, listener.Addr().String(), 20*time.Second); err != nil {
		t.Fatal(err)
	}
	if dropped := <-served; dropped != 2 {
		t.Errorf("ready after %d dropped connections, want 2", dropped)
	}
}

func TestWaitingEndsWithTheProcess(t *testing.T) {
	ports, err := FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	p := shell(t, "exit 3", time.Second)
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0]))
	if err := AwaitReady(context.Background(), p, addr, 20*time.Second); !errors.Is(err, ErrExited) {
		t.Errorf("AwaitReady of an ended process = %v, want ErrExited", err)
	}
}
