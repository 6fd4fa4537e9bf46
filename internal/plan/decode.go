package plan

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of what a file may make the parser do. The parser recurses, and a
// stack that overflows cannot be recovered from.
const (
	maxDepth     = 32      // brackets within brackets
	maxColumn    = 256     // of what opens a block
	maxMarks     = 4       // anchors and tags in a row
	maxMarksLine = 16      // dashes, anchors and tags in a line
	maxLine      = 4096    // bytes: the scanner's time grows with their square
	maxAliased   = 100_000 // values that aliases stand for
)

// positions tells where each field stands, by its path.
type positions map[string]Position

// of is the place of a field, or of the nearest field around it that is there.
func (p positions) of(path string) Position {
	for {
		if pos, ok := p[path]; ok || path == "" {
			return pos
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
}

// Parse reads a plan; name is what errors call the file. Unknown and duplicate
// fields and wrong types are errors, all of them at once. Errors: *LoadError.
func Parse(name string, data []byte) (*Plan, error) {
	p, _, err := parseTree(name, data)
	return p, err
}

// parseTree is Parse that also gives the tree of the file.
func parseTree(name string, data []byte) (*Plan, ast.Node, error) {
	d := &decoder{file: name, at: positions{"": {File: name}}, anchors: map[string]ast.Node{}}
	p := &Plan{}
	root := d.root(data)
	if root != nil && d.isPlan(root) {
		d.value("", root, reflect.ValueOf(p).Elem())
	}
	if len(d.problems) > 0 {
		sortProblems(d.problems)
		return nil, nil, &LoadError{File: name, Problems: d.problems}
	}
	p.at = d.at
	return p, root, nil
}

// unixLines takes off what Windows adds: the library would count lines wrongly.
func unixLines(data []byte) []byte {
	return bytes.ReplaceAll(bytes.TrimPrefix(data, []byte(byteOrderMark)), []byte("\r\n"), []byte("\n"))
}

const byteOrderMark = "\ufeff"

func sortProblems(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		if a.Pos.Line != b.Pos.Line {
			return a.Pos.Line - b.Pos.Line
		}
		return a.Pos.Column - b.Pos.Column
	})
}

// decoder fills a value from the tree of a YAML file and notes where
// everything stands. The library's own decoder stops at the first mistake.
type decoder struct {
	file     string
	at       positions
	problems []Problem
	anchors  map[string]ast.Node
	aliases  int // within how many aliases we are
	aliased  int // values read through aliases
}

func (d *decoder) problem(path string, pos Position, format string, args ...any) {
	d.problems = append(d.problems, Problem{Field: path, Pos: pos, Message: fmt.Sprintf(format, args...)})
}

// root is the file's only document; nil where there is a problem.
func (d *decoder) root(data []byte) (root ast.Node) {
	defer func() {
		if r := recover(); r != nil { // the library's, on input that its authors did not think of
			d.problem("", d.at[""], "this is not YAML that can be read: %v", r)
			root = nil
		}
	}()
	data = unixLines(data)
	if !d.isTame(data) {
		return nil
	}
	tokens := lexer.Tokenize(string(data))
	if !d.isBounded(tokens) {
		return nil
	}
	file, err := parser.Parse(tokens, parser.ParseComments, parser.AllowDuplicateMapKey())
	if err != nil {
		d.syntax(err)
		return nil
	}
	return d.only(file.Docs)
}

func (d *decoder) only(docs []*ast.DocumentNode) ast.Node {
	var root ast.Node
	for _, doc := range docs {
		if doc.Body == nil || doc.Body.Type() == ast.NullType || doc.Body.Type() == ast.CommentType {
			continue
		}
		if root != nil {
			d.problem("", d.position(doc.Body), "a second document: a plan file holds one plan")
			return nil
		}
		root = doc.Body
	}
	if root == nil {
		d.problem("", d.at[""], "the file holds no plan")
	}
	return root
}

func (d *decoder) syntax(err error) {
	var yamlErr yaml.Error
	if !errors.As(err, &yamlErr) {
		d.problem("", d.at[""], "not YAML: %v", err)
		return
	}
	pos := d.at[""]
	if t := yamlErr.GetToken(); t != nil && t.Position != nil {
		pos.Line, pos.Column = t.Position.Line, t.Position.Column
	}
	// Its Error() would print the whole file around the place.
	d.problem("", pos, "not YAML: %s", strings.ReplaceAll(yamlErr.GetMessage(), "\t", `\t`))
}

// isTame refuses lines that would keep the scanner busy for minutes.
func (d *decoder) isTame(data []byte) bool {
	pos := d.at[""]
	pos.Column = 1
	for line := range bytes.Lines(data) {
		pos.Line++
		if len(line) > maxLine {
			d.problem("", pos, "a line of %d bytes: no line of a plan is longer than %d", len(line), maxLine)
			return false
		}
		if marksIn(line) > maxMarksLine {
			d.problem("", pos, "nested too deeply for a plan")
			return false
		}
	}
	return true
}

// marksIn counts what may open a block or name an anchor or a tag.
func marksIn(line []byte) int {
	n := 0
	for word := range bytes.FieldsSeq(line) {
		if strings.ContainsRune("-?&!", rune(word[0])) {
			n++
		}
	}
	return n
}

// isBounded refuses what would make the parser recurse without end.
func (d *decoder) isBounded(tokens token.Tokens) bool {
	depth, marks := 0, 0
	for _, t := range tokens {
		marks++
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.AnchorType, token.TagType, token.AliasType:
			marks++
		default:
			marks = 0
		}
		opensBlock := t.Type == token.SequenceEntryType || t.Type == token.MappingKeyType || t.Type == token.MappingValueType
		if depth > maxDepth || marks > 2*maxMarks+1 || (depth == 0 && opensBlock && t.Position.Column > maxColumn) {
			pos := d.at[""]
			pos.Line, pos.Column = t.Position.Line, t.Position.Column
			d.problem("", pos, "nested too deeply for a plan")
			return false
		}
	}
	return true
}

// isPlan looks at what the file says it is first: of another kind's file
// nothing else is worth telling.
func (d *decoder) isPlan(root ast.Node) bool {
	entries, ok := d.entries(root)
	if !ok {
		d.problem("", d.position(root), "want a plan (apiVersion, kind, metadata, spec), got %s", describe(root))
		return false
	}
	for _, e := range entries {
		key, _ := keyOf(e)
		text, _ := scalarText(e.Value)
		switch {
		case key == "kind" && text != Kind:
			d.problem(key, d.position(e.Value), "want %s, got %q", Kind, text)
		case key == "apiVersion" && text != APIVersion:
			d.problem(key, d.position(e.Value), "want %s, got %q", APIVersion, text)
		}
	}
	return len(d.problems) == 0
}

func (d *decoder) position(n ast.Node) Position {
	t := n.GetToken()
	switch n := n.(type) {
	case *ast.MappingValueNode:
		t = n.Key.GetToken()
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			t = n.Values[0].Key.GetToken()
		}
	}
	if t == nil || t.Position == nil {
		return d.at[""]
	}
	return Position{File: d.file, Line: t.Position.Line, Column: t.Position.Column}
}

// value fills into from a node. Nothing (a null) leaves it as it is.
func (d *decoder) value(path string, n ast.Node, into reflect.Value) {
	if _, isAlias := n.(*ast.AliasNode); isAlias {
		d.aliases++
		defer func() { d.aliases-- }()
	}
	n = d.follow(path, n)
	if n == nil || n.Type() == ast.NullType || n.Type() == ast.CommentType || d.isBomb(path, n) {
		return
	}
	switch into.Kind() {
	case reflect.Struct:
		d.fields(path, n, into)
	case reflect.Slice:
		d.items(path, n, into)
	case reflect.Map:
		d.pairs(path, n, into)
	case reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		d.value(path, n, into.Elem())
	default:
		d.scalar(path, n, into)
	}
}

// isBomb counts what aliases stand for: a small file can mean a huge plan.
func (d *decoder) isBomb(path string, n ast.Node) bool {
	if d.aliases > 0 {
		d.aliased++
	}
	if d.aliased == maxAliased+1 {
		d.problem(path, d.position(n), "aliases stand for more than %d values: no plan is that large", maxAliased)
	}
	return d.aliased > maxAliased
}

// follow takes anchors, aliases and tags off a node.
func (d *decoder) follow(path string, n ast.Node) ast.Node {
	switch n := n.(type) {
	case *ast.AnchorNode:
		inner := d.follow(path, n.Value)
		d.anchors[n.Name.GetToken().Value] = inner
		return inner
	case *ast.AliasNode:
		target, ok := d.anchors[n.Value.GetToken().Value]
		if !ok {
			d.problem(path, d.position(n), "alias *%s: no such anchor before it", n.Value.GetToken().Value)
		}
		return target
	case *ast.TagNode:
		d.problem(path, d.position(n), "tag %s: a plan has no tags", n.Start.Value)
		return nil
	default:
		return n
	}
}

func (d *decoder) entries(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	default:
		return nil, false
	}
}

func keyOf(e *ast.MappingValueNode) (string, bool) {
	switch k := e.Key.(type) {
	case *ast.StringNode:
		return k.Value, true
	case *ast.MergeKeyNode:
		return "<<", false
	default:
		return k.GetToken().Value, false
	}
}

func (d *decoder) fields(path string, n ast.Node, into reflect.Value) {
	entries, ok := d.entries(n)
	if !ok {
		d.problem(path, d.position(n), "want fields (%s), got %s", strings.Join(builtNames(into.Type()), ", "), describe(n))
		return
	}
	seen := map[string]Position{}
	for _, e := range entries {
		key, _ := keyOf(e)
		field := join(path, key)
		if !d.isNew(seen, field, key, e) {
			continue
		}
		i := slices.Index(fieldNames(into.Type()), key)
		if i < 0 {
			d.problem(field, d.position(e.Key), "%s", unknownField(key, into.Type()))
			continue
		}
		if instead := docOf(into.Type(), key).Instead; instead != "" {
			d.problem(field, d.position(e.Key), "is not built yet; remove it (%s)", instead)
			continue
		}
		d.value(field, e.Value, into.Field(i))
	}
}

// isNew notes where an entry stands and says whether its key is there for the
// first time.
func (d *decoder) isNew(seen map[string]Position, field, key string, e *ast.MappingValueNode) bool {
	pos := d.position(e.Key)
	if first, ok := seen[key]; ok {
		d.problem(field, pos, "is there twice; the first is in line %d", first.Line)
		return false
	}
	seen[key] = pos
	d.at[field] = pos
	return true
}

func unknownField(key string, t reflect.Type) string {
	if key == "<<" {
		return "merge keys are not read; write the fields out"
	}
	names := builtNames(t)
	if near := meant(key, names); near != "" {
		return fmt.Sprintf("unknown field; did you mean %s?", near)
	}
	return fmt.Sprintf("unknown field; here may stand: %s", strings.Join(names, ", "))
}

// builtNames are the fields that may be written today.
func builtNames(t reflect.Type) []string {
	return slices.DeleteFunc(fieldNames(t), func(name string) bool { return docOf(t, name).Instead != "" })
}

func (d *decoder) items(path string, n ast.Node, into reflect.Value) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		d.problem(path, d.position(n), "want a list, got %s", describe(n))
		return
	}
	if len(seq.Values) == 0 {
		return // as if it were not there
	}
	out := reflect.MakeSlice(into.Type(), len(seq.Values), len(seq.Values))
	for i, item := range seq.Values {
		field := fmt.Sprintf("%s[%d]", path, i)
		d.at[field] = d.position(item)
		d.value(field, item, out.Index(i))
		if d.aliased > maxAliased {
			return
		}
	}
	into.Set(out)
}

func (d *decoder) pairs(path string, n ast.Node, into reflect.Value) {
	entries, ok := d.entries(n)
	if !ok {
		d.problem(path, d.position(n), "want names with values, got %s", describe(n))
		return
	}
	if len(entries) == 0 {
		return
	}
	out, seen := reflect.MakeMap(into.Type()), map[string]Position{}
	for _, e := range entries {
		key, isText := keyOf(e)
		field := fmt.Sprintf("%s[%s]", path, key)
		if !d.isNew(seen, field, key, e) {
			continue
		}
		if !isText {
			d.problem(field, d.position(e.Key), "want a text as name: put it in quotes")
			continue
		}
		value := reflect.New(into.Type().Elem()).Elem()
		d.value(field, e.Value, value)
		out.SetMapIndex(reflect.ValueOf(key), value)
	}
	into.Set(out)
}

func (d *decoder) scalar(path string, n ast.Node, into reflect.Value) {
	if b, ok := n.(*ast.BoolNode); ok && into.Kind() == reflect.Bool {
		into.SetBool(b.Value)
		return
	}
	text, isText := scalarText(n)
	switch {
	case into.Kind() == reflect.Int:
		d.number(path, n, into)
	case into.Kind() == reflect.String && isText:
		into.SetString(text)
	case into.Kind() == reflect.Bool:
		d.problem(path, d.position(n), "want true or false, got %s", describe(n))
	case isScalar(n):
		d.problem(path, d.position(n), "want a text, got %s: put it in quotes", describe(n))
	default:
		d.problem(path, d.position(n), "want a text, got %s", describe(n))
	}
}

// number takes what both YAML and a person read as the same whole number.
func (d *decoder) number(path string, n ast.Node, into reflect.Value) {
	if i, ok := n.(*ast.IntegerNode); ok {
		if v, err := strconv.Atoi(i.Token.Value); err == nil {
			into.SetInt(int64(v))
			return
		}
	}
	d.problem(path, d.position(n), "want a whole number, got %s", describe(n))
}

func scalarText(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	default:
		return "", false
	}
}

func isScalar(n ast.Node) bool {
	_, ok := n.(ast.ScalarNode)
	return ok
}

func describe(n ast.Node) string {
	switch n := n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "fields"
	case *ast.SequenceNode:
		return "a list"
	case *ast.StringNode:
		return fmt.Sprintf("the text %q", short(n.Value))
	case *ast.LiteralNode:
		return fmt.Sprintf("the text %q", short(n.Value.Value))
	case *ast.BoolNode:
		return fmt.Sprintf("%t", n.Value)
	case *ast.IntegerNode, *ast.FloatNode:
		return "the number " + short(n.GetToken().Value)
	case *ast.NullNode:
		return "nothing"
	default:
		return short(n.GetToken().Value)
	}
}

// short keeps a message readable whatever the file holds.
func short(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
