package repository

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/kopia/kopia/repo/blob"
	"github.com/kopia/kopia/repo/blob/filesystem"
	"github.com/kopia/kopia/repo/blob/s3"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Storage says where a repository is. There are no keys in it: they come from where Velero has them, see [Storage.Open].
type Storage struct {
	// Path is that of a directory, and then there is no bucket.
	Path string
	// Bucket and Prefix are those of S3. Velero's prefix is that of the backup storage location, then kopia/NAMESPACE/.
	Bucket, Prefix string
	// URL, Region, Profile, CAFile and SkipVerify are as the location's config has them; an empty URL is Amazon's.
	URL, Region, Profile, CAFile string
	SkipVerify                   bool
}

// Open opens the storage. The keys are those of the profile in the file that AWS_SHARED_CREDENTIALS_FILE names; without that
// variable, those of the environment (AWS_ACCESS_KEY_ID and others) or of the machine's role. Errors never have keys in them.
func (s Storage) Open(ctx context.Context) (blob.Storage, error) {
	if s.Path != "" {
		return filesystem.New(ctx, &filesystem.Options{Path: s.Path}, false)
	}
	options, err := s.s3Options(os.Getenv)
	if err != nil {
		return nil, err
	}
	storage, err := s3.New(ctx, &options, false)
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", s.Bucket, err)
	}
	return storage, nil
}

func (s Storage) s3Options(getenv func(string) string) (s3.Options, error) {
	options := s3.Options{BucketName: s.Bucket, Prefix: s.Prefix, Region: s.Region, DoNotVerifyTLS: s.SkipVerify}
	var err error
	if options.Endpoint, options.DoNotUseTLS, err = endpoint(s.URL, s.Region); err != nil {
		return s3.Options{}, err
	}
	if s.CAFile != "" {
		if options.RootCA, err = os.ReadFile(s.CAFile); err != nil {
			return s3.Options{}, err
		}
	}
	if file := getenv("AWS_SHARED_CREDENTIALS_FILE"); file != "" {
		keys, err := credentials.NewFileAWSCredentials(file, s.Profile).GetWithContext(nil)
		if err != nil {
			return s3.Options{}, fmt.Errorf("keys of the bucket from %s: %w", file, err)
		}
		if keys.AccessKeyID == "" || keys.SecretAccessKey == "" {
			return s3.Options{}, fmt.Errorf("%s has no keys for the profile %q", file, s.Profile)
		}
		options.AccessKeyID, options.SecretAccessKey, options.SessionToken = keys.AccessKeyID, keys.SecretAccessKey, keys.SessionToken
	}
	return options, nil
}

// endpoint is what kopia wants of a URL: host and port, and whether it is plain HTTP.
func endpoint(address, region string) (host string, plain bool, err error) {
	if address == "" {
		if region == "" {
			return "s3.amazonaws.com", false, nil
		}
		return "s3." + region + ".amazonaws.com", false, nil
	}
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	parsed, err := url.Parse(address)
	if err != nil {
		return "", false, errors.New("the URL of the object store cannot be read")
	}
	if parsed.Host == "" || strings.Trim(parsed.Path, "/") != "" || parsed.User != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") {
		return "", false, fmt.Errorf("the URL of the object store has to be http(s)://HOST[:PORT] and is %q", parsed.Redacted())
	}
	return parsed.Host, parsed.Scheme == "http", nil
}
