package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// Schema is the form of a plan as a JSON schema (draft-07), for editors. It
// refuses nothing that Parse and Validate take; what they refuse for reasons
// that lie between fields it lets pass.
func Schema() []byte {
	root := schemaOf(Fields())
	root["$schema"] = "http://json-schema.org/draft-07/schema#"
	root["title"] = Kind + " " + APIVersion
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic(err) // maps, lists and texts
	}
	return append(text, '\n')
}

type object = map[string]any

func schemaOf(f Field) object {
	s := object{"description": f.Sentences()}
	if f.Instead != "" {
		s["not"] = object{} // nothing is right here yet
		return s
	}
	switch {
	case strings.HasPrefix(f.Type, "[]") && len(f.Fields) > 0:
		s["type"], s["items"] = orNull(f, "array"), groupOf(f)
	case strings.HasPrefix(f.Type, "[]"):
		s["type"], s["items"] = orNull(f, "array"), textOf(f)
	case strings.HasPrefix(f.Type, "map["):
		s["type"], s["additionalProperties"] = orNull(f, "object"), textOf(f)
		if len(f.Keys) > 0 {
			s["additionalProperties"], s["properties"] = false, each(f.Keys, textOf(f))
		}
	case len(f.Fields) > 0:
		maps.Copy(s, groupOf(f))
		s["type"] = orNull(f, "object")
	case f.Type == "string":
		maps.Copy(s, textOf(f))
		if !f.Required {
			s["type"] = []string{"string", "null"}
		}
	default:
		s["type"] = orNull(f, f.Type)
	}
	return s
}

// orNull is the type of a field that may also be left open.
func orNull(f Field, kind string) any {
	if f.Required || f.Name == "plan" {
		return kind
	}
	return []string{kind, "null"}
}

func groupOf(f Field) object {
	properties, required := object{}, []string{}
	for _, below := range f.Fields {
		properties[below.Name] = schemaOf(below)
		if below.Required {
			required = append(required, below.Name)
		}
	}
	return object{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

// textOf is a text of the field's form. Where the field may be left out an
// empty text is as none.
func textOf(f Field) object {
	s := object{"type": "string"}
	isItem := f.Type != "string"
	switch {
	case len(f.Values) > 0 && (f.Required || isItem):
		s["enum"] = f.Values
	case len(f.Values) > 0:
		all := []any{"", nil}
		for _, v := range f.Values {
			all = append(all, v)
		}
		s["enum"] = all
	case f.Form != "" && (f.Required || isItem):
		s["pattern"] = f.Form.pattern()
	case f.Form != "":
		s["pattern"] = "^$|" + f.Form.pattern()
	case f.Required:
		s["minLength"] = 1
	}
	return s
}

func each(names []string, schema object) object {
	out := object{}
	for _, name := range names {
		out[name] = schema
	}
	return out
}

// Sentences are all that a field's documentation says.
func (d Doc) Sentences() string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	brief := d.Brief
	if brief != "" {
		brief = strings.ToUpper(brief[:1]) + strings.TrimSuffix(brief[1:], ".")
	}
	say("%s.", brief)
	if d.Form.Text() != "" {
		say("Wants %s.", d.Form.Text())
	}
	if d.More != "" {
		say("%s", d.More)
	}
	if d.Default != "" {
		say("Default: %s.", d.Default)
	}
	if d.Fact {
		say("Written by discovery.")
	}
	if len(d.Unbuilt) > 0 {
		say("Not built yet and refused: %s.", strings.Join(d.Unbuilt, ", "))
	}
	if d.Instead != "" {
		say("Not built yet and refused. Until then: %s.", d.Instead)
	}
	return strings.Join(out, " ")
}
