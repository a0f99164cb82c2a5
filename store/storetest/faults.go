package storetest

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/troupe-broker/troupe/store"
)

// Injector makes a file system fail by rules. A rule is one line:
//
//	<operation> <glob> [nth <n> | from <n> | after <bytes>]: <action>
//
// The operation is one of those that [Slow] names, or any. The glob is matched
// against the last part of the path, or * for all. Matching operations are counted:
// "nth 3" is the third, "from 3" the third and all later ones, "after 4096" those
// that would take the rule's sum of bytes beyond 4096; without a condition, all. The
// action is
//
//	EIO, ENOSPC, EROFS, …  the operation does nothing and returns this error; a sync
//	                       leaves the pages clean, as the kernel does
//	short <n>              a write puts n bytes down and returns ENOSPC
//	torn                   a write puts half of its sectors down, every other one, and
//	                       returns EIO
//	flip <n>               a read returns the byte at position n of the file with a bit
//	                       flipped, when it reads that byte
//	lie                    a sync does nothing and returns success
//
// For example "sync *.log nth 3: EIO" or "allocate * after 65536: ENOSPC".
type Injector struct {
	store.FS
	mu    sync.Mutex
	rules []*rule
}

type rule struct {
	text   string
	op     string
	glob   string
	when   string // "", nth, from, after
	limit  int64
	action string
	errno  syscall.Errno
	arg    int64

	count int64 // of matching operations, or bytes
	hits  int
}

var errnos = map[string]syscall.Errno{
	"EIO": syscall.EIO, "ENOSPC": syscall.ENOSPC, "EROFS": syscall.EROFS, "EDQUOT": syscall.EDQUOT,
	"EMFILE": syscall.EMFILE, "ENOMEM": syscall.ENOMEM, "EACCES": syscall.EACCES,
}

var operations = []string{
	"any", "open", "rename", "remove", "mkdir", "readdir", "stat", "read", "write", "truncate",
	"allocate", "sync", "map", "syncdir", "syncfs",
}

// Faults wraps a file system. It panics on a rule that it cannot read: rules are
// part of a test's text.
func Faults(inner store.FS, rules ...string) *Injector {
	j := &Injector{}
	j.FS = &wrapped{inner, j.around}
	for _, text := range rules {
		j.Add(text)
	}
	return j
}

// Add adds a rule, whose count begins now.
func (j *Injector) Add(text string) {
	r, err := parseRule(text)
	if err != nil {
		panic(err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.rules = append(j.rules, r)
}

// Clear removes all rules.
func (j *Injector) Clear() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.rules = nil
}

// Hits is how often the rules have acted.
func (j *Injector) Hits() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := 0
	for _, r := range j.rules {
		n += r.hits
	}
	return n
}

func parseRule(text string) (*rule, error) {
	bad := func(what string) (*rule, error) {
		return nil, fmt.Errorf("storetest: rule %q: %s", text, what)
	}
	left, right, ok := strings.Cut(text, ":")
	if !ok {
		return bad("no colon before the action")
	}
	words, action := strings.Fields(left), strings.Fields(right)
	if len(words) != 2 && len(words) != 4 {
		return bad("an operation, a glob, and perhaps nth, from or after with a number")
	}
	r := &rule{text: text, op: words[0], glob: words[1]}
	if !slices.Contains(operations, r.op) {
		return bad("unknown operation " + r.op)
	}
	if _, err := path.Match(r.glob, ""); err != nil {
		return bad("bad glob")
	}
	if len(words) == 4 {
		n, err := strconv.ParseInt(words[3], 10, 64)
		if r.when, r.limit = words[2], n; err != nil || n < 0 || !slices.Contains([]string{"nth", "from", "after"}, r.when) {
			return bad("the condition is nth, from or after with a number")
		}
	}
	return r, r.parseAction(action)
}

func (r *rule) parseAction(words []string) error {
	if len(words) > 0 {
		r.action = words[0]
	}
	errno, isError := errnos[r.action]
	switch {
	case isError && len(words) == 1:
		r.action, r.errno = "fail", errno
		return nil
	case (r.action == "torn" || r.action == "lie") && len(words) == 1:
		return nil
	case (r.action == "short" || r.action == "flip") && len(words) == 2:
		n, err := strconv.ParseInt(words[1], 10, 64)
		if r.arg = n; err == nil && n >= 0 {
			return nil
		}
	}
	return fmt.Errorf("storetest: rule %q: unknown action", r.text)
}

// match counts the call and tells whether the rule acts on it.
func (r *rule) match(c *call) bool {
	if r.op != "any" && r.op != c.op {
		return false
	}
	if ok, err := path.Match(r.glob, path.Base(c.name)); err != nil || (!ok && r.glob != "*") {
		return false
	}
	switch r.when {
	case "nth":
		r.count++
		return r.count == r.limit
	case "from":
		r.count++
		return r.count >= r.limit
	case "after":
		if r.count+c.size > r.limit {
			return true
		}
		r.count += c.size
		return false
	}
	return true
}

func (j *Injector) pick(c *call) *rule {
	j.mu.Lock()
	defer j.mu.Unlock()
	var found *rule
	for _, r := range j.rules {
		if r.match(c) && found == nil {
			found = r
		}
	}
	if found != nil {
		found.hits++
	}
	return found
}

func (j *Injector) around(c *call, do func() (int, error)) (int, error) {
	r := j.pick(c)
	if r == nil {
		return do()
	}
	switch r.action {
	case "lie":
		return 0, nil
	case "flip":
		n, err := do()
		if at := r.arg - c.off; c.op == "read" && at >= 0 && at < int64(n) {
			c.data[at] ^= 0x10
		}
		return n, err
	case "short":
		n, err := c.write(c.data[:min(r.arg, int64(len(c.data)))])
		if err == nil {
			err = pathError(c.op, c.name, syscall.ENOSPC)
		}
		return n, err
	case "torn":
		return 0, c.tear()
	}
	if w, ok := c.file.(interface{ Wash() }); ok && c.op == "sync" {
		w.Wash()
	}
	return 0, pathError(c.op, c.name, r.errno)
}

func (c *call) write(b []byte) (int, error) {
	if c.op != "write" || c.file == nil {
		return 0, nil
	}
	return c.file.WriteAt(b, c.off)
}

// tear writes every other sector of a write.
func (c *call) tear() error {
	for at := int64(0); c.op == "write" && at < int64(len(c.data)); at += 2 * SectorBytes {
		end := min(at+SectorBytes, int64(len(c.data)))
		if _, err := c.file.WriteAt(c.data[at:end], c.off+at); err != nil {
			return err
		}
	}
	return pathError(c.op, c.name, syscall.EIO)
}
