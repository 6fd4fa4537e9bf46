package preflight

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mig-cli/mig/internal/discover"
)

// Conditions of the kinds of objects, and of those who make them.
const (
	VersionNotServed     = "VersionNotServed"     // a restore asks for the version of the backup
	KindNotServed        = "KindNotServed"        // the destination does not know it, and is not told of it
	DefinitionsGoAlong   = "DefinitionsGoAlong"   // it does not know it yet; who acts on such objects must be brought there
	WebhookDown          = "WebhookDown"          // it must answer before an object is made, and cannot
	CatalogMissing       = "CatalogMissing"       // OLM finds no operator for a Subscription
	SubscriptionsGoAlong = "SubscriptionsGoAlong" // OLM installs the operators on the destination
	GeneratedByOLM       = "GeneratedByOLM"       // OLM makes its own on the destination
)

func kindChecks() []check {
	return []check{unserved, webhooksDown, catalogs, generated}
}

// unserved finds objects that the destination does not take as they are backed
// up: a restore leaves them out.
func unserved(l look) []Condition {
	var versions, kinds, defined []string
	for _, u := range l.src.Unserved {
		objects := "objects: " + few(u.Objects)
		switch {
		case eachVersion(l) && len(common(u.Others, u.There)) > 0: // Velero takes one of these
		case len(u.There) > 0:
			versions = append(versions, fmt.Sprintf("%s (%s on the source, %s on the destination; %s; %s)", u.Kind, served(u), strings.Join(u.There, ", "), inCommon(u), objects))
		case u.Defined:
			defined = append(defined, fmt.Sprintf("%s (%s)", u.Kind, objects))
		default:
			kinds = append(kinds, fmt.Sprintf("%s (%s; %s)", u.Kind, served(u), objects))
		}
	}
	return slices.Concat(
		risk(VersionNotServed, "NoSuchVersion", versions, "kinds that the destination does not serve in the version in which they are backed up: %s: a restore leaves such objects out",
			"have the destination serve the version of the source; where both serve another one, Velero takes it with --features=EnableAPIGroupVersions on both sides; see them with: kubectl api-versions"),
		risk(KindNotServed, "NoSuchKind", kinds, "kinds that the destination does not know: %s: a restore leaves such objects out",
			"bring there what serves them, before the run"),
		found(Advisory, DefinitionsGoAlong, "DefinitionInBackup", defined, "kinds that the destination does not know yet: %s: their definitions go along; who acts on them must be installed there", ""),
	)
}

// eachVersion says whether Velero backs up and restores every version of a kind,
// and not the preferred one alone.
func eachVersion(l look) bool {
	const feature = "EnableAPIGroupVersions"
	return slices.Contains(l.src.Velero.Server.Features, feature) && slices.Contains(l.dst.Velero.Server.Features, feature)
}

// served are the versions of the source, the one of the backup first.
func served(u discover.Unserved) string {
	return strings.Join(append([]string{u.Version}, u.Others...), ", ")
}

func inCommon(u discover.Unserved) string {
	both := common(u.Others, u.There)
	return "both serve " + cmp.Or(strings.Join(both, ", "), "none")
}

// webhooksDown: one finding, each webhook with what it would keep from being made.
func webhooksDown(l look) []Condition {
	var names []string
	var first string
	for _, w := range l.dst.Webhooks {
		first = orElse(first, strings.ToLower(w.Configuration))
		names = append(names, fmt.Sprintf("%s (webhook %s, failurePolicy Fail, service %s: %s; it is asked about %s)", w.Configuration, w.Name, w.Service, w.Why, few(w.Objects)))
	}
	return risk(WebhookDown, "NoAnswer", names, "webhooks of the destination that must answer before objects of the plan are made, and do not: %s",
		fmt.Sprintf("bring the service up; or, if nobody needs the webhook any more: kubectl --context %s delete %s", l.dst.Context, first))
}

// catalogs tells which operators the destination can install.
func catalogs(l look) []Condition {
	if l.dst.HasGap(discover.PartSubscriptions) {
		return nil
	}
	var missing, along []string
	for _, s := range l.src.Subscriptions {
		shown := fmt.Sprintf("Subscription/%s (package %s of CatalogSource %s)", s.Key(), s.Package, s.Catalog)
		if s.There {
			along = append(along, shown)
		} else {
			missing = append(missing, shown)
		}
	}
	return slices.Concat(
		risk(CatalogMissing, "NoSuchCatalog", missing, "operators that the destination cannot install, for it has no such catalog: %s: what they rule would stand still",
			"make the CatalogSource there, or install the operator there by other means and label the Subscription velero.io/exclude-from-backup=true"),
		found(Advisory, SubscriptionsGoAlong, "InstalledAgain", along, "operators that are installed anew on the destination: %s: what they rule comes up when they have", ""),
	)
}

func generated(l look) []Condition {
	return found(Advisory, GeneratedByOLM, "MadeAgain", l.src.Generated, "objects that OLM makes by itself: %s: they are left out, and it makes its own on the destination", "")
}
