package progress

import (
	"regexp"
	"unicode/utf8"
)

// Hidden stands for what must not be told.
const Hidden = "[hidden]"

// What secrets look like in the texts of errors: clusters, object stores and
// credential plugins quote what they were given.
var (
	userinfo   = regexp.MustCompile(`(://)[^/\s:@]+:[^/\s@]+@`)
	jwt        = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*`)
	authScheme = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9+/_.~=-]{8,}`)
	named      = regexp.MustCompile(`(?i)\b([\w.-]*(?:password|passwd|passphrase|secret[_-]?(?:access[_-]?)?key|session[_-]?token|access[_-]?token|refresh[_-]?token|id[_-]?token|client[_-]?secret|api[_-]?key|account[_-]?key|token|x-amz-signature|x-amz-credential|x-amz-security-token)"?\s*(?:=|:)\s*)("[^"]*"|'[^']*'|[^\s,;&"']+)`)
	accessKey  = regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`)
	pemBlock   = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`)
)

// Redact hides what looks like a secret in a text that goes where others read
// it: records, Events, files. It errs on the side of hiding.
func Redact(text string) string {
	text = pemBlock.ReplaceAllString(text, Hidden)
	text = userinfo.ReplaceAllString(text, "${1}"+Hidden+"@")
	text = jwt.ReplaceAllString(text, Hidden)
	text = authScheme.ReplaceAllString(text, "${1} "+Hidden)
	text = named.ReplaceAllString(text, "${1}"+Hidden)
	return accessKey.ReplaceAllString(text, Hidden)
}

// Cut shortens a text to at most limit bytes, between two runes and visibly.
// Limits below the length of the mark give an empty text.
func Cut(text string, limit int) string {
	const mark = "…"
	if len(text) <= limit {
		return text
	}
	end := limit - len(mark)
	if end < 0 {
		return ""
	}
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}
