package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// oneContext is a kubeconfig with one context, named as its cluster and user.
func oneContext(name, server, more string) string {
	return "apiVersion: v1\nkind: Config\n" +
		"contexts: [{name: " + name + ", context: {cluster: " + name + ", user: " + name + "}}]\n" +
		"clusters: [{name: " + name + ", cluster: {server: '" + server + "'" + more + "}}]\n" +
		"users: [{name: " + name + ", user: {token: " + secretToken + "}}]\n"
}

const secretToken = "s3cr3t-t0ken"

// files writes files into the working directory of a test, which it makes.
func files(t *testing.T, content map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOME", t.TempDir())
	for name, text := range content {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestContextsAreThoseOfTheKubeconfigInOrder(t *testing.T) {
	files(t, map[string]string{"b": oneContext("src", "https://b", ""), "a": oneContext("dst", "https://a", "")})
	if got := Contexts("a"); !slices.Equal(got, []string{"dst"}) {
		t.Errorf("of one file: got %v, want dst", got)
	}
	t.Setenv("KUBECONFIG", "b:a")
	if got := Contexts(""); !slices.Equal(got, []string{"dst", "src"}) {
		t.Errorf("of the environment's: got %v, want dst and src", got)
	}
	if got := Contexts("none"); len(got) > 0 {
		t.Errorf("of a file that is not there: got %v, want none", got)
	}
}

func TestContextsOfSeveralFilesAreFoundAndTheFirstWins(t *testing.T) {
	files(t, map[string]string{
		"one/src.yaml": oneContext("src", "https://one:1", ""),
		"two/dst.yaml": oneContext("dst", "https://two:2", "") + "current-context: dst\n",
		"three.yaml":   oneContext("src", "https://three:3", ""),
	})
	t.Setenv("KUBECONFIG", strings.Join([]string{"", "one/src.yaml", "missing.yaml", "two/dst.yaml", "three.yaml"}, string(os.PathListSeparator)))
	for context, want := range map[string]string{"src": "https://one:1", "dst": "https://two:2"} {
		c, err := Connect(Access{Context: context}, "velero")
		if err != nil || c.Server != want {
			t.Errorf("context %s: got %+v, %v, want %s", context, c, err, want)
		}
	}
	c, err := Connect(Access{Context: "src", Kubeconfig: "three.yaml"}, "velero")
	if err != nil || c.Server != "https://three:3" {
		t.Errorf("a file that is named wins over the environment: got %+v, %v", c, err)
	}
}

func TestPathsInAKubeconfigAreRelativeToIt(t *testing.T) {
	files(t, map[string]string{
		"pki/token": "from-the-file", "elsewhere/x": "",
		"config": strings.Replace(oneContext("src", "https://one", ""), "token: "+secretToken, "tokenFile: pki/token", 1),
	})
	config, err := filepath.Abs("config")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("elsewhere")
	c, err := Connect(Access{Context: "src", Kubeconfig: config}, "velero")
	if err != nil || c.Config.BearerToken != "from-the-file" {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestAContextThatIsNotThereIsToldWithThoseThatAreAndTheFilesRead(t *testing.T) {
	files(t, map[string]string{
		"one": oneContext("prod-east", "https://one", ""), "two": oneContext("arn:aws:eks:eu-1:1:cluster/shop", "https://two", ""), "empty": "",
	})
	for _, c := range []struct{ name, list, path, context, want string }{
		{"a slip", "one:gone:two", "", "prod-eats", `context "prod-eats" is not in one, two (not there: gone); did you mean prod-east? there are: arn:aws:eks:eu-1:1:cluster/shop, prod-east`},
		{"a part of the name", "one:two", "", "shop", `context "shop" is not in one, two; did you mean arn:aws:eks:eu-1:1:cluster/shop? there are: arn:aws:eks:eu-1:1:cluster/shop, prod-east`},
		{"nothing like it", "one", "", "x", `context "x" is not in one; there are: prod-east`},
		{"an empty file", "one", "empty", "x", `context "x": empty has no contexts`},
		{"no file at all", "gone", "", "x", `context "x": there is no kubeconfig file gone`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", c.list)
			_, err := Connect(Access{Context: c.context, Kubeconfig: c.path}, "velero")
			var unknown *UnknownContextError
			if !errors.As(err, &unknown) || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestWithoutAnyKubeconfigTheFileThatIsMissingIsNamed(t *testing.T) {
	files(t, nil)
	_, err := Connect(Access{Context: "src"}, "velero")
	if err == nil || !strings.Contains(err.Error(), "there is no kubeconfig file") || !strings.Contains(err.Error(), filepath.Join(".kube", "config")) {
		t.Errorf("got %v, want kubectl's own file named", err)
	}
}

func TestAKubeconfigThatCannotBeUsedIsNamedWithTheReasonAndWithoutItsSecrets(t *testing.T) {
	good := oneContext("src", "https://one", "")
	for name, c := range map[string]struct{ content, want string }{
		"binary":                          {"\x7fELF\x02\x01\x01\x00" + secretToken, "kubeconfig config: this is not a kubeconfig"},
		"a token":                         {secretToken, "kubeconfig config: this is not a kubeconfig"},
		"another object":                  {"apiVersion: v1\nkind: Secret\nstringData: {token: " + secretToken + "}\n", "kubeconfig config: this is not a kubeconfig"},
		"broken YAML":                     {good + "x: [\n", "kubeconfig config: this is not a kubeconfig (line 6)"},
		"a token that is an alias":        {strings.ReplaceAll(good, "token: "+secretToken, "token: *"+secretToken), "kubeconfig config: this is not a kubeconfig"},
		"a token of another type":         {strings.ReplaceAll(good, "token: "+secretToken, "token: ["+secretToken+"]"), "kubeconfig config: this is not a kubeconfig"},
		"a certificate that is not coded": {strings.ReplaceAll(good, "token: "+secretToken, "client-key-data: '!"+secretToken+"'"), "kubeconfig config: this is not a kubeconfig"},
		"a context without cluster":       {strings.ReplaceAll(good, "cluster: src, ", ""), `kubeconfig for context "src": it names no cluster`},
		"a cluster that is not there":     {strings.ReplaceAll(good, "clusters: [{name: src", "clusters: [{name: other"), `it names the cluster "src", which is not in config; there are: other`},
		"a user that is not there":        {strings.ReplaceAll(good, "users: [{name: src", "users: [{name: other"), `it names the user "src", which is not in config; there are: other`},
		"no users at all":                 {good[:strings.Index(good, "users:")], `it names the user "src", which is not in config; there is none at all`},
		"no server":                       {oneContext("src", "", ""), `its cluster "src" has no server`},
		"a proxy that is no URL":          {oneContext("src", "https://one", ", proxy-url: 'http://me:"+secretToken+"@pro xy'"), `proxy-url of its cluster "src" is not a URL`},
		"a proxy of another kind":         {oneContext("src", "https://one", ", proxy-url: 'ftp://me:"+secretToken+"@proxy'"), `proxy-url of its cluster "src" wants a proxy by http://, https:// or socks5://`},
		"an authority that is not there":  {oneContext("src", "https://one", ", certificate-authority: ca.crt"), "ca.crt: no such file or directory"},
		"an authority that is none":       {oneContext("src", "https://one", ", certificate-authority: config"), "unable to load root certificates"},
		"an authority that is not to be asked": {
			oneContext("src", "https://one", ", insecure-skip-tls-verify: true, certificate-authority: config"), "insecure flag is not allowed",
		},
		"a certificate without key":      {strings.ReplaceAll(good, "token: "+secretToken, "client-certificate: config"), "client-key-data or client-key must be specified"},
		"a pair that is none":            {strings.ReplaceAll(good, "token: "+secretToken, "client-certificate: config, client-key: config"), "failed to find any PEM data"},
		"a token file that is not there": {strings.ReplaceAll(good, "token: "+secretToken, "tokenFile: gone"), "gone: no such file or directory"},
		"a provider that is gone":        {strings.ReplaceAll(good, "token: "+secretToken, "auth-provider: {name: gcp, config: {access-token: "+secretToken+"}}"), "gke-gcloud-auth-plugin"},
		"a helper without mode":          {strings.ReplaceAll(good, "token: "+secretToken, "exec: {apiVersion: client.authentication.k8s.io/v1, command: x, env: [{name: S, value: "+secretToken+"}]}"), "interactiveMode must be specified"},
	} {
		t.Run(name, func(t *testing.T) {
			files(t, map[string]string{"config": c.content})
			_, err := Connect(Access{Context: "src", Kubeconfig: "config"}, "velero")
			var bad *KubeconfigError
			if !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want a *KubeconfigError that says %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), secretToken) {
				t.Errorf("a secret is in %q", err)
			}
		})
	}
}

func TestAPathThatCannotBeMeantAsAKubeconfigSaysWhy(t *testing.T) {
	files(t, map[string]string{"dir/x": ""})
	for path, want := range map[string]string{
		"gone":     "kubeconfig gone: no such file or directory",
		"dir":      "kubeconfig dir: is a directory",
		"~/config": "kubeconfig ~/config: a shell expands ~",
		"a:b":      "kubeconfig a:b: a list of files is understood in the environment's KUBECONFIG only",
	} {
		_, err := Connect(Access{Context: "src", Kubeconfig: path}, "velero")
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", path, err, want)
		}
	}
}

// A user is not needed to reach a cluster, for kubectl neither: what the
// cluster thinks of an anonymous one is for it to say.
func TestAContextWithoutUserIsAnonymous(t *testing.T) {
	files(t, map[string]string{"config": strings.ReplaceAll(oneContext("src", "https://one", ""), ", user: src", "")})
	c, err := Connect(Access{Context: "src", Kubeconfig: "config"}, "velero")
	if err != nil || c.Config.BearerToken != "" {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestConnectingChangesNoKubeconfig(t *testing.T) {
	content := oneContext("src", "https://one", "") + "current-context: other\n"
	files(t, map[string]string{"config": content})
	t.Setenv("KUBECONFIG", "config")
	if _, err := Connect(Access{Context: "src"}, "velero"); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile("config"); err != nil || string(got) != content {
		t.Errorf("got %s, %v", got, err)
	}
}
