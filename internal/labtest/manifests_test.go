package labtest

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/mig-cli/mig/internal/cluster"
)

func TestManifestsHoldNoFieldThatKubernetesDoesNotKnow(t *testing.T) {
	decoder := serializer.NewCodecFactory(cluster.Scheme(), serializer.EnableStrict).UniversalDeserializer()
	for name, manifest := range map[string]string{
		"shop.yaml": ShopYAML, "archive.yaml": ArchiveYAML, "notes.yaml": NotesYAML, "front.yaml": FrontYAML,
	} {
		for i, document := range strings.Split(manifest, "\n---\n") {
			if _, _, err := decoder.Decode([]byte(document), nil, nil); err != nil {
				t.Errorf("%s, object %d: %v", name, i+1, err)
			}
		}
	}
}
