package plan

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// EditError is a plan file whose text cannot be changed in place: what would
// have to be changed is written in a way that only a person should touch.
type EditError struct {
	Field string
	Pos   Position
	Why   string
}

func (e *EditError) Error() string {
	return Problem{Field: e.Field, Pos: e.Pos, Message: e.Why + "; change it by hand"}.String()
}

// Edit is the text of a plan file, brought to say what want says: comments,
// order and form of all that is equal stay byte for byte. Lists of fields may
// grow, not shrink. What it gives back was parsed and found equal to want; a
// file that cannot be edited so is an *EditError, one that cannot be read a
// *LoadError.
func Edit(name string, old []byte, want *Plan) ([]byte, error) {
	have, root, err := parseTree(name, old)
	if err != nil {
		return nil, err
	}
	e := newEditor(name, old)
	e.fields("", root, reflect.ValueOf(*have), reflect.ValueOf(*want))
	if e.err != nil {
		return nil, e.err
	}
	text := e.apply()
	again, err := Parse(name, text)
	if err != nil || !again.equal(want) {
		return nil, &EditError{Pos: Position{File: name}, Why: "the file is written in a way that cannot be edited without changing more than was asked"}
	}
	return text, nil
}

func (p *Plan) equal(other *Plan) bool {
	return p.APIVersion == other.APIVersion && p.Kind == other.Kind && p.Metadata == other.Metadata &&
		bytes.Equal(Marshal(p), Marshal(other))
}

// editor gathers the changes of a text. Within it lines end as on Unix.
type editor struct {
	file    string
	text    []byte
	lines   []int  // where each line begins
	head    string // a byte order mark
	isDOS   bool
	changes []change
	err     error
}

// change replaces the bytes from (with) to (without).
type change struct {
	from, to int
	text     string
}

func newEditor(file string, text []byte) *editor {
	e := &editor{file: file, text: unixLines(text), lines: []int{0}}
	if bytes.HasPrefix(text, []byte(byteOrderMark)) {
		e.head, text = byteOrderMark, text[len(byteOrderMark):]
	}
	for i, b := range e.text {
		if b == '\n' {
			e.lines = append(e.lines, i+1)
		}
	}
	breaks := len(text) - len(e.text)
	e.isDOS = breaks > 0
	if e.isDOS && breaks != len(e.lines)-1 {
		e.err = &EditError{Pos: Position{File: file}, Why: "some of its lines end as on Windows and some do not"}
	}
	return e
}

// apply makes the text with all changes. At one place what is added comes
// before what goes, and of several the one that was made first.
func (e *editor) apply() []byte {
	slices.SortStableFunc(e.changes, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(min(a.to-a.from, 1), min(b.to-b.from, 1)))
	})
	var out []byte
	at := 0
	for _, c := range e.changes {
		if c.from < at {
			continue // within what went already; the look at the result tells whether that was right
		}
		out = append(out, e.text[at:c.from]...)
		if c.from == len(e.text) && strings.HasSuffix(c.text, "\n") && len(out) > 0 && out[len(out)-1] != '\n' {
			out = append(out, '\n')
		}
		out = append(out, c.text...)
		at = c.to
	}
	out = append(out, e.text[at:]...)
	if e.isDOS {
		out = bytes.ReplaceAll(out, []byte("\n"), []byte("\r\n"))
	}
	return append([]byte(e.head), out...)
}

func (e *editor) change(from, to int, text string) {
	e.changes = append(e.changes, change{from, to, text})
}

func (e *editor) fail(field string, n ast.Node, why string) {
	if e.err == nil {
		pos := n.GetToken().Position
		e.err = &EditError{Field: field, Pos: Position{File: e.file, Line: pos.Line, Column: pos.Column}, Why: why}
	}
}

// value brings the text of one value to what is wanted.
func (e *editor) value(path string, n ast.Node, have, want reflect.Value) {
	if same(have, want) {
		return
	}
	if a, ok := n.(*ast.AnchorNode); ok {
		n = a.Value
	}
	switch kind := want.Kind(); {
	case isEmpty(n), isAlias(n):
		e.replace(path, n, want)
	case kind == reflect.Struct:
		e.fields(path, n, have, want)
	case kind == reflect.Map:
		e.pairs(path, n, have, want)
	case kind == reflect.Slice && want.Type().Elem().Kind() == reflect.Struct:
		e.items(path, n, have, want)
	default:
		e.replace(path, n, want)
	}
}

// same says whether two values are the same in a file: nothing and an empty
// list are.
func same(a, b reflect.Value) bool {
	if (a.Kind() == reflect.Slice || a.Kind() == reflect.Map) && a.Len() == 0 && b.Len() == 0 {
		return true
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

func isAlias(n ast.Node) bool { _, ok := n.(*ast.AliasNode); return ok }

// isEmpty says whether a node holds nothing: null, [] or {}.
func isEmpty(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.NullNode:
		return true
	case *ast.SequenceNode:
		return len(n.Values) == 0
	case *ast.MappingNode:
		return len(n.Values) == 0
	default:
		return false
	}
}

func entriesOf(n ast.Node) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	default:
		return nil
	}
}

func (e *editor) fields(path string, n ast.Node, have, want reflect.Value) {
	entries := entriesOf(n)
	gone := map[int]string{}
	var before *ast.MappingValueNode // the last field that comes earlier in a plan, is there and stays
	for i, key := range fieldNames(want.Type()) {
		field := join(path, key)
		at := slices.IndexFunc(entries, func(m *ast.MappingValueNode) bool { k, _ := keyOf(m); return k == key })
		h, w := have.Field(i), want.Field(i)
		equal := same(h, w)
		switch {
		case equal:
		case at < 0:
			e.insert(n, before, key, w)
		case isNothing(w) && w.Kind() != reflect.Bool && key != keyAction:
			gone[at] = emptyOf(w)
		default:
			e.value(field, entries[at].Value, h, w)
			if key == keyAction {
				e.mark(want, entries[at])
			}
		}
		if _, goes := gone[at]; at >= 0 && !goes {
			before = entries[at]
		}
	}
	e.remove(n, entries, gone)
}

// keyAction is the field that says what it may be while it is empty.
const keyAction = "action"

// mark puts the mark of what must be chosen behind an action that is taken
// out, and takes it off one that is chosen.
func (e *editor) mark(volume reflect.Value, entry *ast.MappingValueNode) {
	end := e.end(entry)
	rest := e.text[end:e.lineEnd(end)]
	said := string(bytes.TrimSpace(rest))
	switch chosen := !volume.FieldByName("Action").IsZero(); {
	case chosen && strings.HasPrefix(said, "# "+choose):
		e.change(end, end+len(rest), "")
	case !chosen && said == "":
		e.change(end, end, " # "+choose+possible(volume.FieldByName("Supported")))
	}
}

func (e *editor) pairs(path string, n ast.Node, have, want reflect.Value) {
	entries := entriesOf(n)
	gone := map[int]string{}
	for at, entry := range entries {
		key, _ := keyOf(entry)
		w := want.MapIndex(reflect.ValueOf(key))
		if !w.IsValid() {
			gone[at] = `""`
			continue
		}
		e.value(path, entry.Value, have.MapIndex(reflect.ValueOf(key)), w)
	}
	e.remove(n, entries, gone)
	last := entries[len(entries)-1]
	for _, key := range sortedKeys(want.Interface().(map[string]string)) {
		if !have.MapIndex(reflect.ValueOf(key)).IsValid() {
			e.insert(n, last, text(key), want.MapIndex(reflect.ValueOf(key)))
		}
	}
}

func (e *editor) items(path string, n ast.Node, have, want reflect.Value) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok || want.Len() < have.Len() {
		e.fail(path, n, "a list that would become shorter")
		return
	}
	for i, item := range seq.Values {
		e.value(fmt.Sprintf("%s[%d]", path, i), item, have.Index(i), want.Index(i))
	}
	if more := want.Slice(have.Len(), want.Len()); more.Len() > 0 {
		e.appendItems(seq, more)
	}
}

func (e *editor) appendItems(seq *ast.SequenceNode, more reflect.Value) {
	last := e.end(seq.Values[len(seq.Values)-1])
	if !seq.IsFlowStyle {
		e.change(e.nextLine(last), e.nextLine(last), block(more, seq.Start.Position.Column-1))
		return
	}
	separator := ", "
	if line := e.text[last:e.offset(seq.End.Position.Line, seq.End.Position.Column)]; bytes.ContainsRune(line, '\n') {
		separator = ",\n" + strings.Repeat(" ", e.columnOf(seq.Values[0]))
	}
	for i := range more.Len() {
		e.change(last, last, separator+flow(more.Index(i)))
	}
}

func (e *editor) columnOf(n ast.Node) int { return n.GetToken().Position.Column - 1 }

// insert adds an entry to a mapping, behind the one named, else as the last.
func (e *editor) insert(n ast.Node, behind *ast.MappingValueNode, key string, want reflect.Value) {
	entries := entriesOf(n)
	if behind == nil {
		behind = entries[len(entries)-1]
	}
	end := e.end(behind)
	if m, ok := n.(*ast.MappingNode); ok && m.IsFlowStyle {
		e.change(end, end, ", "+key+": "+flow(want))
		return
	}
	indent := behind.Key.GetToken().Position.Column - 1
	e.change(e.nextLine(end), e.nextLine(end), blockEntry(key, want, indent))
}

// remove takes entries out of a mapping: the lines that they are on, or what is
// between two commas. For each it is told how a file says that it is empty.
func (e *editor) remove(n ast.Node, entries []*ast.MappingValueNode, gone map[int]string) {
	m, ok := n.(*ast.MappingNode)
	isFlow := ok && m.IsFlowStyle
	first := 0 // of those that stay
	for ; first < len(entries); first++ {
		if _, goes := gone[first]; !goes {
			break
		}
	}
	if isFlow && first > 0 {
		to := e.end(entries[len(entries)-1])
		if first < len(entries) {
			to = e.offsetOf(entries[first].Key)
		}
		e.change(e.offsetOf(entries[0].Key), to, "")
	}
	for at := range entries {
		empty, goes := gone[at]
		switch {
		case !goes, isFlow && at < first:
		case isFlow:
			e.change(e.end(entries[at-1]), e.end(entries[at]), "")
		default:
			e.removeLines(entries, at, empty)
		}
	}
}

func (e *editor) removeLines(entries []*ast.MappingValueNode, at int, empty string) {
	key := entries[at].Key.GetToken().Position
	from, to := e.lines[key.Line-1], e.end(entries[at])
	if before := e.text[from:e.offset(key.Line, key.Column)]; len(bytes.TrimSpace(before)) == 0 && len(entries) > 1 {
		e.change(from, e.nextLine(to), "")
		return
	}
	// The line begins an item, or nothing would be left: say that it is empty.
	colon := entries[at].Start.Position
	e.change(e.offset(colon.Line, colon.Column)+1, to, " "+empty)
}

// emptyOf is how a file says that a field holds nothing.
func emptyOf(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Slice:
		return "[]"
	case reflect.Struct, reflect.Map:
		return "{}"
	case reflect.Pointer, reflect.Int:
		return "null"
	default:
		return `""`
	}
}

// replace writes another value in the place of one.
func (e *editor) replace(path string, n ast.Node, want reflect.Value) {
	from, to := e.offsetOf(n), e.end(n)
	if seq, ok := n.(*ast.SequenceNode); ok && !seq.IsFlowStyle {
		e.replaceLines(seq, want)
		return
	}
	isComposite := want.Kind() == reflect.Struct || want.Kind() == reflect.Map || want.Kind() == reflect.Slice && want.Type().Elem().Kind() == reflect.Struct
	if isComposite && isEmpty(n) && !isAlias(n) && !e.isWithinFlow(n) {
		e.replaceEmpty(n, want)
		return
	}
	if _, ok := n.(*ast.LiteralNode); ok || bytes.ContainsRune(e.text[from:to], '\n') && want.Kind() == reflect.String {
		e.fail(path, n, "a text of several lines")
		return
	}
	value := flow(want)
	if from > 0 && e.text[from-1] == ':' {
		value = " " + value // where nothing stood
	}
	if to-from > len(`""`) && e.text[from] == '"' && want.Kind() == reflect.String { // as its writer likes it
		value = strconv.Quote(want.String())
	}
	e.change(from, to, value)
}

// replaceLines writes another list in the place of one with a line an item.
func (e *editor) replaceLines(seq *ast.SequenceNode, want reflect.Value) {
	from := e.offset(seq.Start.Position.Line, seq.Start.Position.Column)
	items := block(want, seq.Start.Position.Column-1)
	e.change(from, e.end(seq), strings.TrimSpace(items))
}

// replaceEmpty writes entries below a key that holds nothing yet.
func (e *editor) replaceEmpty(n ast.Node, want reflect.Value) {
	from, to := e.offsetOf(n), e.end(n)
	for from < to && from > 0 && e.text[from-1] == ' ' {
		from--
	}
	e.change(from, to, "")
	line := e.lines[n.GetToken().Position.Line-1]
	indent := len(e.text[line:]) - len(bytes.TrimLeft(e.text[line:], " -"))
	end := e.nextLine(to)
	e.change(end, end, block(want, indent+2))
}

// isWithinFlow says whether a node stands between brackets.
func (e *editor) isWithinFlow(n ast.Node) bool {
	line := e.text[e.lines[n.GetToken().Position.Line-1]:e.offsetOf(n)]
	return bytes.ContainsAny(line, "{[")
}

func (e *editor) offsetOf(n ast.Node) int {
	p := n.GetToken().Position
	switch n := n.(type) {
	case *ast.MappingValueNode:
		p = n.Key.GetToken().Position
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			p = n.Values[0].Key.GetToken().Position
		}
	case *ast.AnchorNode:
		p = n.Start.Position
	}
	return e.offset(p.Line, p.Column)
}

// offset is the byte at a line and a column, which counts characters.
func (e *editor) offset(line, column int) int {
	if line < 1 || line > len(e.lines) {
		return len(e.text)
	}
	at := e.lines[line-1]
	for range column - 1 {
		if at >= len(e.text) {
			break
		}
		at++
		for at < len(e.text) && e.text[at]&0xC0 == 0x80 { // within a character
			at++
		}
	}
	return at
}

// end is the first byte behind a node, comments not counted.
func (e *editor) end(n ast.Node) int {
	switch n := n.(type) {
	case *ast.MappingValueNode:
		if isImplicit(e, n.Value) {
			return e.offset(n.Start.Position.Line, n.Start.Position.Column) + 1
		}
		return e.end(n.Value)
	case *ast.MappingNode:
		if n.IsFlowStyle {
			return e.offset(n.End.Position.Line, n.End.Position.Column) + 1
		}
		return e.end(n.Values[len(n.Values)-1])
	case *ast.SequenceNode:
		if n.IsFlowStyle {
			return e.offset(n.End.Position.Line, n.End.Position.Column) + 1
		}
		return e.end(n.Values[len(n.Values)-1])
	case *ast.AnchorNode:
		return e.end(n.Value)
	case *ast.AliasNode:
		return e.offsetOf(n.Value) + len(n.Value.GetToken().Value)
	case *ast.LiteralNode:
		return e.endOfLiteral(n)
	default:
		return e.endOfScalar(n)
	}
}

// isImplicit is a null that nobody wrote.
func isImplicit(e *editor, n ast.Node) bool {
	if n.Type() != ast.NullType {
		return false
	}
	at := e.offsetOf(n)
	return !bytes.HasPrefix(e.text[at:], []byte("null")) && !bytes.HasPrefix(e.text[at:], []byte("~")) && !bytes.HasPrefix(bytes.ToLower(e.text[at:]), []byte("null"))
}

func (e *editor) endOfScalar(n ast.Node) int {
	at := e.offsetOf(n)
	if isImplicit(e, n) {
		return at
	}
	raw := strings.TrimSpace(n.GetToken().Origin)
	return min(at+len(raw), len(e.text))
}

// endOfLiteral is the end of a block of text: the last line that is indented
// like its first, or deeper.
func (e *editor) endOfLiteral(n *ast.LiteralNode) int {
	first := n.Start.Position.Line // the line after that of the mark, from 0
	end, indent := e.lineEnd(e.offset(first, 1)), -1
	for line := first; line < len(e.lines); line++ {
		content := e.text[e.lines[line]:e.lineEnd(e.lines[line])]
		trimmed := bytes.TrimLeft(content, " ")
		if len(bytes.TrimSpace(content)) == 0 {
			continue
		}
		if indent < 0 {
			indent = len(content) - len(trimmed)
		}
		if len(content)-len(trimmed) < indent || indent == 0 {
			break
		}
		end = e.lineEnd(e.lines[line])
	}
	return end
}

// lineEnd is where the line of a byte ends, its line break not counted.
func (e *editor) lineEnd(at int) int {
	end := len(e.text)
	if i := bytes.IndexByte(e.text[at:], '\n'); i >= 0 {
		end = at + i
	}
	return end
}

// nextLine is where the line after that of a byte begins.
func (e *editor) nextLine(at int) int {
	if i := bytes.IndexByte(e.text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(e.text)
}

// goneMark stands above a claim that is no longer on the source.
const goneMark = "# gone: mig found this claim no longer on the source; take it out of the plan, or find out who deleted it"

// MarkGone writes a mark above the claims that are gone, and takes it off
// those that are back. Where a claim has no line of its own it is not marked.
// What cannot be parsed is given back as it is.
func MarkGone(name string, text []byte, gone []string) []byte {
	p, err := Parse(name, text)
	if err != nil {
		return text
	}
	e := newEditor(name, text)
	for i, v := range p.Spec.Volumes {
		e.markGone(p.at.of(fmt.Sprintf("spec.volumes[%d]", i)), slices.Contains(gone, v.Claim))
	}
	return e.apply()
}

func (e *editor) markGone(item Position, gone bool) {
	start := e.offset(item.Line, 1)
	line := e.text[start:e.lineEnd(start)]
	content := bytes.TrimLeft(line, " ")
	if !bytes.HasPrefix(content, []byte("- ")) {
		return
	}
	above := e.offset(max(item.Line-1, 1), 1)
	marked := string(bytes.TrimSpace(e.text[above:e.lineEnd(above)])) == goneMark
	switch {
	case gone && !marked:
		e.change(start, start, string(line[:len(line)-len(content)])+goneMark+"\n")
	case !gone && marked:
		e.change(above, start, "")
	}
}
