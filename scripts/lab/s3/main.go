// s3 is the lab's object store: the Versity gateway over a directory, where a plain directory below the root is a bucket.
//
// It takes the gateway's library and not its command, whose other backends (Azure, GPFS, …) would be a quarter of the build.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

// What the gateway's own command takes when it is not told otherwise.
const (
	maxConnections = 250_000
	maxRequests    = 100_000
	maxParts       = 10_000
	concurrency    = 5_000
)

func main() {
	address := flag.String("address", "", "`host:port` to listen on")
	data := flag.String("data", "", "`directory` whose sub-directories are the buckets")
	metadata := flag.String("metadata", "", "`directory` for what S3 knows of an object and a file system does not")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *address, *data, *metadata); err != nil {
		log.Fatal(err)
	}
}

func serve(ctx context.Context, address, data, metadata string) error {
	// Not extended attributes: not every file system has them, and a directory can be looked at.
	sidecar, err := meta.NewSideCar(metadata)
	if err != nil {
		return err
	}
	options := posix.PosixOpts{SideCarDir: metadata, Concurrency: concurrency}
	options.SetNewDirPerm(0o755)
	options.SetNewFilePerm(0o644)
	store, err := posix.New(data, sidecar, options)
	if err != nil {
		return err
	}
	return embedgw.RunVersityGW(ctx, store, &embedgw.Config{
		RootUserAccess:    os.Getenv("ROOT_ACCESS_KEY"),
		RootUserSecret:    os.Getenv("ROOT_SECRET_KEY"),
		Ports:             []string{address},
		MaxConnections:    maxConnections,
		MaxRequests:       maxRequests,
		MultipartMaxParts: maxParts,
		KeepAlive:         true,
		HealthPath:        "/health",
		Quiet:             true,
	})
}
