//go:build e2e

package cases

import (
	"strings"
)

// expectation is what a user would want of a scenario that lies elsewhere. It
// takes the names from the scenario, and asks for them, for the cause and for
// the exit code, never for a sentence.
type expectation struct {
	user string // who mig is on both clusters; empty: the administrator
	want func(*place, *handed)
}

var expectations = map[string]expectation{
	"A01": {want: func(p *place, h *handed) {
		for _, o := range h.dst {
			h.blocks(p, o.GetName())
		}
		h.exits(p, blocked, "plan validate")
		h.exits(p, blocked, "migrate --watch")
	}},
	"A06": {want: func(p *place, h *handed) {
		for _, o := range h.src {
			if o.GetKind() == "Namespace" && len(o.GetLabels()) == 0 {
				h.blocks(p, o.GetName(), h.dst[0].GetName())
			}
		}
		h.exits(p, blocked, "plan validate")
	}},
	"B01": {want: func(p *place, h *handed) {
		for _, claim := range namesOf(h.src, "PersistentVolumeClaim") {
			if row := h.discovery.of(claim); row.DestinationClass == "" || row.Why == "" {
				p.t.Errorf("no class proposed for %s, or not why: %+v", claim, row)
			}
		}
		h.exits(p, done, "plan validate")
	}},
	"D01": {want: func(p *place, h *handed) {
		for _, claim := range namesOf(h.src, "PersistentVolumeClaim") {
			h.warns(p, claim)
		}
		h.warns(p, namesOf(h.src, "Deployment")[0], "hostPath")
		h.exits(p, blocked, "plan validate")
	}},
	"D09": {want: func(p *place, h *handed) {
		for _, o := range h.src {
			mode := nested(o, "spec", "volumeMode")
			if key := o.GetNamespace() + "/" + o.GetName(); mode == "Block" {
				h.blocks(p, key)
				if row := h.discovery.of(key); row.VolumeMode != mode || row.Why == "" {
					p.t.Errorf("the mode of %s, or why it is not copied, is not told: %+v", key, row)
				}
			}
		}
		h.exits(p, blocked, "plan validate")
	}},
	"F01": {want: func(p *place, h *handed) {
		for _, name := range namesOf(h.src, "Deployment") {
			h.blocks(p, name, "0 of")
		}
		h.exits(p, blocked, "plan validate")
	}},
	"F03": {want: func(p *place, h *handed) {
		for _, claim := range namesOf(h.src, "PersistentVolumeClaim") {
			if row := h.discovery.of(claim); row.Backend != "local" {
				p.t.Errorf("it is not told that %s is on a node: %+v", claim, row)
			}
		}
	}},
	"F05": {want: func(p *place, h *handed) {
		for _, kind := range []string{"PriorityClass", "RuntimeClass"} {
			for _, name := range namesOf(h.src, kind) {
				h.warns(p, kind, name)
			}
		}
		h.exits(p, blocked, "plan validate")
	}},
	"G01": {want: func(p *place, h *handed) {
		h.blocks(p, namesOf(h.src, "Service")[0], namesOf(h.dst, "Service")[0], "30080")
		h.exits(p, blocked, "plan validate")
	}},
	"H03": {want: func(p *place, h *handed) {
		h.warns(p, namesOf(h.src, "ResourceQuota")[0], "5/5")
		h.blocks(p, namesOf(h.src, "LimitRange")[0])
		h.exits(p, blocked, "plan validate")
	}},
	"H05": {want: func(p *place, h *handed) {
		h.blocks(p, namesOf(h.dst, "ValidatingWebhookConfiguration")[0], namesOf(h.src, "Ingress")[0], "Fail")
		h.exits(p, blocked, "plan validate")
	}},
	"J01": {want: func(p *place, h *handed) {
		kind := nested(h.src[0], "spec", "names", "kind")
		h.blocks(p, kind, namesOf(h.src, kind)[0], "v1alpha1")
		h.exits(p, blocked, "plan validate")
	}},
	"J06": {want: func(p *place, h *handed) {
		h.warns(p, nested(h.src[0], "spec", "group"))
		h.exits(p, done, "pv discover")
	}},
	"K08": {want: func(p *place, h *handed) {
		h.blocks(p, namesOf(h.src, "Subscription")[0], nested(h.src[len(h.src)-4], "spec", "source"))
	}},
	"M01": {want: func(p *place, h *handed) {
		r := h.result(p, "plan create")
		if !strings.Contains(r.Stderr, "connection refused") {
			p.t.Errorf("both contexts are to be found, and their servers not:\n%s", r)
		}
	}},
	"M03": {want: func(p *place, h *handed) {
		r := h.result(p, "plan create")
		for _, name := range []string{"context dst", "client.authentication.k8s.io/v1alpha1"} {
			if r.Code == done || !strings.Contains(r.Stderr, name) {
				p.t.Errorf("want %s to be named:\n%s", name, r)
			}
		}
	}},
	"M06": {user: "mig-user", want: func(p *place, h *handed) {
		h.exits(p, done, "plan create")
		h.exits(p, denied, "plan validate")
		for side, names := range map[string][]string{
			"SourceRightsGranted":      {"patch deployments.apps", "create backups.velero.io"},
			"DestinationRightsGranted": {"create namespaces", "create restores.velero.io"},
		} {
			p.wantFound(h.validation, side, names...)
		}
	}},
	"P05": {want: func(p *place, h *handed) {
		if r := h.results[0]; r.Code == done || !strings.Contains(r.Stderr, "c") {
			p.t.Errorf("two namespaces of one name are to be refused:\n%s", r)
		}
	}},
	"Q07": {want: func(p *place, h *handed) {
		h.exits(p, done, "plan validate")
	}},
}
