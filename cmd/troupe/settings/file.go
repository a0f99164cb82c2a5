package settings

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/printer"
	"github.com/goccy/go-yaml/token"

	"github.com/troupe-broker/troupe/cluster/config"
)

// Bounds of a configuration file. A real one has a few hundred lines.
const (
	fileBytesMax = 1 << 20
	fileDepthMax = 16
)

// FileError is a file that cannot be read, or is not YAML.
type FileError struct {
	Where   string // file, or file:line:column
	Reason  string
	Excerpt string
	Err     error
}

// Error prints place and reason.
func (e *FileError) Error() string { return e.Where + ": " + e.Reason }

// Unwrap gives the cause.
func (e *FileError) Unwrap() error { return e.Err }

// readFile reads a YAML file.
func readFile(name string) (*document, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, &FileError{Where: name, Reason: "cannot be read: " + reason(err), Err: err}
	}
	if info.Size() > fileBytesMax {
		return nil, &FileError{Where: name, Reason: fmt.Sprintf("has %d bytes, more than the %d that a configuration may have", info.Size(), fileBytesMax)}
	}
	src, err := os.ReadFile(name)
	if err != nil {
		return nil, &FileError{Where: name, Reason: "cannot be read: " + reason(err), Err: err}
	}
	return parse(name, src)
}

func reason(err error) string {
	if path, ok := errors.AsType[*os.PathError](err); ok {
		return path.Err.Error()
	}
	return err.Error()
}

// parse reads a document of keys. The text of a value is kept as it stands in the file, so that 007 or 1_000 reach
// the check as they were typed.
func parse(name string, src []byte) (*document, error) {
	src = bytes.TrimPrefix(src, []byte("\uFEFF")) // Windows' editors mark UTF-8 so
	if err := checkText(name, src); err != nil {
		return nil, err
	}
	parsed, err := parser.ParseBytes(src, 0)
	if err != nil {
		return nil, syntaxError(name, src, err)
	}
	d := &document{name: name, excerpts: map[string]string{}}
	for i, doc := range parsed.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.NullType || doc.Body.Type() == ast.CommentType {
			continue
		}
		if i > 0 && len(d.given) > 0 {
			return nil, d.refuse(doc.Body, "there is a second document; keep one")
		}
		if err := asProperties(name, src, doc.Body); err != nil {
			return nil, err
		}
		if err := d.mapping(doc.Body, "", 0); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// checkText refuses what is no text, without printing it: what a terminal makes of such bytes is nobody's wish.
func checkText(name string, src []byte) error {
	for i, r := range string(src) {
		written := bytes.HasPrefix(src[i:], []byte("\uFFFD")) // and not put there for a byte that is no UTF-8
		if r == '\t' || r == '\n' || r == '\r' || !unicode.IsControl(r) && (r != utf8.RuneError || written) {
			continue
		}
		return &FileError{
			Where:  fmt.Sprintf("%s:%d", name, bytes.Count(src[:i], []byte{'\n'})+1),
			Reason: fmt.Sprintf("the file is no text: it has the byte 0x%02x here; a configuration is YAML in UTF-8", src[i]),
		}
	}
	return nil
}

// syntaxError is what is wrong with the form of a file.
func syntaxError(name string, src []byte, err error) *FileError {
	syntax, ok := errors.AsType[*yaml.SyntaxError](err)
	if !ok {
		return &FileError{Where: name, Reason: err.Error(), Err: err}
	}
	tk := syntax.Token
	fe := &FileError{Where: place(name, tk), Reason: syntax.Message, Excerpt: excerpt(tk), Err: err}
	if !strings.Contains(syntax.Message, "not allowed in this context") || tk == nil || tk.Position == nil {
		return fe
	}
	fe.Reason += ": is the line indented as the keys that it belongs to?"
	// A value goes on in lines that are indented more, and only their colon is one too much: the parser has the place of the value.
	if n := tk.Next; n != nil && n.Position != nil && n.Position.Line > tk.Position.Line {
		line := lineOf(src, n.Position.Line)
		column := len(line) - len(strings.TrimLeft(line, " ")) + 1
		fe.Where = fmt.Sprintf("%s:%d:%d", name, n.Position.Line, column)
		fe.Excerpt = excerptAt(src, n.Position.Line, column)
	}
	return fe
}

// property is a line of a .properties file, as Kafka's configuration is.
var property = regexp.MustCompile(`^\s*([A-Za-z][\w.-]*)\s*=\s*(.*?)\s*$`)

// asProperties refuses a document of such lines, which is one long word in YAML, by its first one.
func asProperties(name string, src []byte, body ast.Node) error {
	tk := body.GetToken()
	if _, scalar := body.(ast.ScalarNode); !scalar || tk == nil || tk.Position == nil {
		return nil
	}
	m := property.FindStringSubmatch(lineOf(src, tk.Position.Line))
	if m == nil {
		return nil
	}
	return &FileError{
		Where: place(name, tk), Excerpt: excerptAt(src, tk.Position.Line, strings.Index(m[0], "=")+1),
		Reason: fmt.Sprintf("this is no YAML: write `%s: %s`, key: value for key=value", m[1], m[2]),
	}
}

// lineOf is a line of a file, from 1 on; "" when there is none.
func lineOf(src []byte, number int) string {
	for line := range strings.Lines(string(src)) {
		if number--; number == 0 {
			return strings.TrimRight(line, "\r\n")
		}
	}
	return ""
}

// excerptAt prints a line with the one before and a caret.
func excerptAt(src []byte, line, column int) string {
	text := fmt.Sprintf(">  %d | %s\n%*s", line, lineOf(src, line), len(fmt.Sprintf(">  %d | ", line))+column, "^")
	if line > 1 {
		text = fmt.Sprintf("   %d | %s\n", line-1, lineOf(src, line-1)) + text
	}
	return text
}

// document is what a file gives, in its order, with the source around each key by its place.
type document struct {
	name     string
	given    []config.Given
	excerpts map[string]string
}

func (d *document) refuse(n ast.Node, why string) error {
	return &FileError{Where: place(d.name, n.GetToken()), Reason: why, Excerpt: excerpt(n.GetToken())}
}

// mapping reads the keys below prefix.
func (d *document) mapping(n ast.Node, prefix string, depth int) error {
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		return d.refuse(n, "keys and values are expected here, such as `log.retention.ms: 3600000`")
	}
	if depth == fileDepthMax {
		return d.refuse(n, fmt.Sprintf("keys are nested more than %d deep", fileDepthMax))
	}
	for _, v := range values {
		if err := d.entry(v, prefix, depth); err != nil {
			return err
		}
	}
	return nil
}

func (d *document) entry(v *ast.MappingValueNode, prefix string, depth int) error {
	key, ok := v.Key.(ast.ScalarNode)
	if !ok || v.Key.Type() == ast.MergeKeyType {
		return d.refuse(v.Key, "a key is a plain word here")
	}
	name := prefix + key.GetToken().Value
	switch value := v.Value.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return d.mapping(value, name+".", depth+1)
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		return d.refuse(v.Value, name+" takes a word, a number or a list of words")
	case *ast.NullNode:
		return d.refuse(v.Key, fmt.Sprintf("%s has no value; write \"\" for an empty one", name))
	}
	text, err := d.text(v.Value, name)
	if err != nil {
		return err
	}
	tk := v.Key.GetToken()
	where := place(d.name, tk)
	d.given = append(d.given, config.Given{Name: name, Value: text, Where: where})
	d.excerpts[where] = excerpt(tk)
	return nil
}

// text reads a scalar, or a list of scalars, which Kafka writes with commas.
func (d *document) text(n ast.Node, name string) (string, error) {
	switch n := n.(type) {
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.SequenceNode:
		words := make([]string, len(n.Values))
		for i, item := range n.Values {
			scalar, ok := item.(ast.ScalarNode)
			if !ok {
				return "", d.refuse(item, name+" is a list of words; this item is none")
			}
			words[i] = scalar.GetToken().Value
		}
		return strings.Join(words, ","), nil
	case ast.ScalarNode:
		return n.GetToken().Value, nil
	}
	return "", d.refuse(n, name+" takes a word, a number or a list of words")
}

// place is file:line:column.
func place(name string, tk *token.Token) string {
	if tk == nil || tk.Position == nil {
		return name
	}
	return fmt.Sprintf("%s:%d:%d", name, tk.Position.Line, tk.Position.Column)
}

// excerpt prints the line of a token with its neighbours and a caret.
func excerpt(tk *token.Token) string {
	if tk == nil || tk.Position == nil {
		return ""
	}
	var p printer.Printer
	return strings.Trim(p.PrintErrorToken(tk, false), "\n")
}
