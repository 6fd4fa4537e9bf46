package plan

import (
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Form is a kind of text that a field wants.
type Form string

// The forms.
const (
	FormName     Form = "name"     // of most objects of Kubernetes
	FormLabel    Form = "label"    // of namespaces
	FormUID      Form = "uid"      // of plans
	FormClaim    Form = "claim"    // NAMESPACE/NAME
	FormWorkload Form = "workload" // KIND/NAMESPACE/NAME
	FormQuantity Form = "quantity" // of bytes
	FormDuration Form = "duration" // more than nothing
	FormImage    Form = "image"    // of a container
)

// Text is what a form wants, in words; empty for a form that wants nothing.
func (f Form) Text() string {
	return map[Form]string{
		FormName:     "a name as Kubernetes allows it (a-z, 0-9, - and .)",
		FormLabel:    "a name as Kubernetes allows it for namespaces (at most 63 of a-z, 0-9 and -)",
		FormUID:      "8 to 63 of a-z, 0-9 and -",
		FormClaim:    "NAMESPACE/NAME",
		FormWorkload: "KIND/NAMESPACE/NAME, such as Deployment/shop/web",
		FormQuantity: "a size such as 10Gi",
		FormDuration: "a duration such as 30m or 1h30m",
		FormImage:    "an image such as registry.example.com/mig-mover:v1",
	}[f]
}

// pattern is a regular expression that every text of the form matches; editors
// know it. What it lets pass may still be wrong.
func (f Form) pattern() string {
	const label, name = `[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?`, `[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?`
	return map[Form]string{
		FormName:     "^" + name + "$",
		FormLabel:    "^" + label + "$",
		FormUID:      uidPattern,
		FormClaim:    "^" + label + "/" + name + "$",
		FormWorkload: "^(" + strings.Join(QuiescedKinds(), "|") + ")/" + label + "/[^/]+$",
		FormQuantity: `^[+]?[0-9.]+([numkMGTPE]|[KMGTPE]i|[eE][-+]?[0-9]+)?$`,
		FormDuration: `^[+]?([0-9.]+(ns|us|µs|ms|s|m|h))+$`,
		FormImage:    imagePattern,
	}[f]
}

// imagePattern is the grammar of an image's name, without its limits of length
// (distribution/reference): the registry, the path, a tag, a digest.
const imagePattern = `^([A-Za-z0-9.-]+(:[0-9]+)?/)?[a-z0-9]+([._/-]+[a-z0-9]+)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?$`

var imageForm = regexp.MustCompile(imagePattern)

const uidPattern = `^[a-z0-9]([a-z0-9-]{6,61})[a-z0-9]$`

// uidForm fits a label's value and a part of a name.
var uidForm = regexp.MustCompile(uidPattern)

// broken tells which rules of the form a text breaks.
func (f Form) broken(text string) []string {
	switch f {
	case FormName:
		return plainly(validation.IsDNS1123Subdomain(text))
	case FormLabel:
		return plainly(validation.IsDNS1123Label(text))
	case FormUID:
		return unless(uidForm.MatchString(text), "want 8 to 63 of a-z, 0-9 and -, as mig plan create makes it")
	case FormQuantity:
		q, err := resource.ParseQuantity(text)
		return unless(err == nil && q.Sign() >= 0, "want "+f.Text())
	case FormDuration:
		d, err := time.ParseDuration(text)
		return unless(err == nil && d > 0, "want "+f.Text())
	case FormImage:
		return unless(imageForm.MatchString(text), "want "+f.Text())
	default:
		return nil
	}
}

// BadLabel tells which rules of a namespace's name a text breaks.
func BadLabel(text string) []string { return FormLabel.broken(text) }

// plainly takes the expression off that Kubernetes ends such sentences with.
func plainly(rules []string) []string {
	for i, rule := range rules {
		rules[i], _, _ = strings.Cut(rule, " (e.g. ")
	}
	return rules
}

func unless(ok bool, why string) []string {
	if ok {
		return nil
	}
	return []string{why}
}
