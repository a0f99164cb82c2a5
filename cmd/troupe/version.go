package main

import (
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// build is what the Go toolchain wrote into the binary.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Cgo      bool   `json:"cgo"`
}

func readBuild() build {
	b := build{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			b.Revision = setting.Value
		case "vcs.time":
			b.Time = setting.Value
		case "vcs.modified":
			b.Modified = setting.Value == "true"
		case "CGO_ENABLED":
			b.Cgo = setting.Value == "1"
		}
	}
	return b
}

// buildVersion is the short name of this build, fit for the protocol's client software version.
func buildVersion() string {
	b := readBuild()
	if b.Version == "(devel)" && len(b.Revision) >= 12 {
		return "devel-" + b.Revision[:12]
	}
	if b.Version == "(devel)" || b.Version == "unknown" {
		return "devel"
	}
	return b.Version
}

func newVersion(s *session) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Say what was built, from what",
		Example: "  troupe version -o json",
		RunE: func(*cobra.Command, []string) error {
			b := readBuild()
			return s.show(b, func(w io.Writer) {
				row(w, "version", b.Version)
				if b.Revision != "" {
					modified := ""
					if b.Modified {
						modified = " (modified)"
					}
					row(w, "revision", b.Revision+modified)
					row(w, "time", b.Time)
				}
				row(w, "go", b.Go)
				row(w, "platform", b.Platform)
				row(w, "cgo", b.Cgo)
			})
		},
	}
}
