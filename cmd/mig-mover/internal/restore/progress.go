package restore

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mig-cli/mig/internal/moverlog"
)

// Progress is how far a restore is.
type Progress = moverlog.Progress

type progress struct {
	phase                                atomic.Pointer[string]
	files, totalFiles, bytes, totalBytes atomic.Int64
}

func (p *progress) enter(phase string) { p.phase.Store(&phase) }

func (p *progress) expect(files []want) {
	for _, file := range files {
		p.totalFiles.Add(1)
		p.totalBytes.Add(file.Size)
	}
}

func (p *progress) state() Progress {
	state := Progress{
		Files: p.files.Load(), TotalFiles: p.totalFiles.Load(), Bytes: p.bytes.Load(), TotalBytes: p.totalBytes.Load(),
	}
	if phase := p.phase.Load(); phase != nil {
		state.Phase = *phase
	}
	return state
}

// watch reports at each tick until it is told to stop, and returns after the last report.
func (p *progress) watch(tick <-chan time.Time, report func(Progress)) (stop func()) {
	if tick == nil || report == nil {
		return func() {}
	}
	var done sync.WaitGroup
	ended := make(chan struct{})
	done.Go(func() {
		var lastTime time.Time
		var lastBytes int64
		for {
			select {
			case <-ended:
				return
			case now := <-tick:
				state := p.state()
				if seconds := now.Sub(lastTime).Seconds(); !lastTime.IsZero() && seconds > 0 {
					state.Rate = int64(float64(state.Bytes-lastBytes) / seconds)
				}
				lastTime, lastBytes = now, state.Bytes
				report(state)
			}
		}
	})
	return func() {
		close(ended)
		done.Wait()
	}
}

// metered counts what is read, and stops reading when the context ends.
func (r *run) metered(ctx context.Context, from io.Reader) io.Reader {
	return readerFunc(func(to []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		count, err := from.Read(to)
		r.progress.bytes.Add(int64(count))
		return count, err
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(to []byte) (int, error) { return f(to) }
