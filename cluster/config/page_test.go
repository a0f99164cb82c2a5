package config

import (
	"flag"
	"os"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write docs/configs.md anew; commit the result only when you understand every changed line")

const pagePath = "../../docs/configs.md"

func TestConfigsPageIsTheGeneratedOne(t *testing.T) {
	want := Page()
	if *rewrite {
		if err := os.WriteFile(pagePath, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(pagePath)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Fatal("docs/configs.md is not what the tables say: run go generate ./cluster/config and read the diff")
	}
}
