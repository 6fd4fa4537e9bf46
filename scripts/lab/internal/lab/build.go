package lab

import (
	"context"
	"errors"
	"os"

	"github.com/mig-cli/mig/scripts/lab/internal/build"
	"github.com/mig-cli/mig/scripts/lab/internal/cluster"
	"github.com/mig-cli/mig/scripts/lab/internal/host"
	"github.com/mig-cli/mig/scripts/lab/internal/image"
	"github.com/mig-cli/mig/scripts/lab/internal/process"
	"github.com/mig-cli/mig/scripts/lab/internal/velero"
)

// Build makes the programs and images that are wanted and not there, and starts nothing.
func (l Lab) Build(ctx context.Context, want Want) error {
	if err := l.check(ctx, want); err != nil {
		return err
	}
	_, err := l.build(ctx, want)
	return err
}

func (l Lab) build(ctx context.Context, want Want) (made, error) {
	if err := l.cleanWork(ctx); err != nil {
		return made{}, err
	}
	source, err := build.FindSource()
	if err != nil {
		return made{}, err
	}
	builder := build.Builder{Place: l.Place, Say: l.Say}
	maker := image.Maker{Place: l.Place, Say: l.Say}
	result := made{kubernetes: map[string]string{}}
	if want.Parts < Nodes {
		return result, l.buildKubernetes(ctx, builder, source, want, &result)
	}
	// PostgreSQL's image waits for the network and the disk, and all others for processors.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	postgres := make(chan error, 1)
	var archive image.Archive
	go func() {
		var err error
		archive, err = maker.Postgres(ctx, image.Postgres{Reference: "registry.test/postgres:15", UID: postgresUID, Owner: string(l.Place)})
		postgres <- err
	}()
	err = l.buildPrograms(ctx, builder, source, want, &result)
	if err != nil {
		cancel() // then the image's error is this
	}
	if imageErr := <-postgres; err == nil {
		err = imageErr
	}
	if err != nil {
		return made{}, err
	}
	if err := l.makeImages(ctx, maker, want, &result); err != nil {
		return made{}, err
	}
	result.nodeImages = append(result.nodeImages, archive)
	return result, nil
}

// cleanWork ends and removes what a killed lab was making.
func (l Lab) cleanWork(ctx context.Context) error {
	working := func() []int { return process.Marked(process.Builder + "=" + string(l.Place)) }
	if err := process.KillAll(ctx, working); err != nil {
		return err
	}
	return host.RemoveAll(l.Place.Work())
}

func (l Lab) buildPrograms(ctx context.Context, builder build.Builder, source build.Source, want Want, result *made) error {
	if err := l.buildKubernetes(ctx, builder, source, want, result); err != nil {
		return err
	}
	modules := []build.Module{source.Pause()}
	if want.Parts >= Velero {
		modules = append(modules, source.Velero(), source.Mover()) // before CoreDNS, which takes much of what Velero compiles
	}
	modules = append(modules, source.CoreDNS())
	for _, module := range modules {
		if _, err := builder.Ensure(ctx, module); err != nil {
			return err
		}
	}
	if want.Parts < Velero {
		return nil
	}
	var err error
	if result.s3, err = builder.Ensure(ctx, source.S3()); err != nil {
		return err
	}
	result.velero, result.plugin, err = source.VeleroVersions()
	return err
}

func (l Lab) buildKubernetes(ctx context.Context, builder build.Builder, source build.Source, want Want, result *made) error {
	module, err := source.Kubernetes()
	if err != nil {
		return err
	}
	if result.kubernetes[""], err = builder.Ensure(ctx, module); err != nil {
		return err
	}
	for _, version := range want.Kubernetes {
		other, err := builder.KubernetesVersion(ctx, source, version)
		if err != nil {
			return err
		}
		if result.kubernetes[version], err = builder.Ensure(ctx, other); err != nil {
			return err
		}
	}
	kubectl := l.Place.Program("kubectl")
	if target, err := os.Readlink(kubectl); err != nil || target != "kubernetes" {
		if err := errors.Join(os.RemoveAll(kubectl), os.Symlink("kubernetes", kubectl)); err != nil {
			return err
		}
	}
	return nil
}

func (l Lab) makeImages(ctx context.Context, maker image.Maker, want Want, result *made) error {
	toolbox, err := image.Toolbox(ctx, "registry.test/toolbox:1")
	if err != nil {
		return err
	}
	forNodes := []image.Small{
		{
			Name: "pause", Reference: cluster.PauseImage,
			Config:   image.Config{Entrypoint: []string{"/pause"}, User: "65535:65535"},
			Programs: map[string]string{"/pause": l.Place.Program("pause")},
		},
		{
			Name: "coredns", Reference: cluster.CoreDNSImage,
			Config:   image.Config{Entrypoint: []string{"/coredns"}},
			Programs: map[string]string{"/coredns": l.Place.Program("coredns")},
		},
		toolbox,
	}
	if result.nodeImages, err = makeAll(maker, forNodes); err != nil || want.Parts < Velero {
		return err
	}
	mover := image.Small{
		Name: "mig-mover", Reference: "registry.test/mig-mover:1",
		Config:   image.Config{Entrypoint: []string{"/mig-mover"}},
		Programs: map[string]string{"/mig-mover": l.Place.Program("mig-mover")},
	}
	result.veleroImages, err = makeAll(maker, append(velero.Images(l.Place, result.velero, result.plugin), mover))
	return err
}

func makeAll(maker image.Maker, images []image.Small) ([]image.Archive, error) {
	var archives []image.Archive
	for _, small := range images {
		archive, err := maker.Small(small)
		if err != nil {
			return nil, err
		}
		archives = append(archives, archive)
	}
	return archives, nil
}
