package app

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// env is an environment for one test.
type env map[string]string

func (e env) get(key string) string { return e[key] }

// runWinnow runs the command line.
func runWinnow(t *testing.T, e env, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = run(context.Background(), args, e.get, &out, &errOut)
	return code, out.String(), errOut.String()
}

func TestConfigSources(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(secret, []byte("postgres://u:hunter2@db/winnow\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		env  env
		args []string
		want string
	}{
		{"default", nil, nil, "PORT=8080 # --port, default"},
		{"environment", env{"PORT": "9000"}, nil, "PORT=9000 # --port, PORT"},
		{"flag wins", env{"PORT": "9000"}, []string{"--port", "9001"}, "PORT=9001 # --port, flag"},
		{"secret is hidden", env{"DATABASE_URL": "postgres://u:hunter2@db/winnow"}, nil, "DATABASE_URL=postgres://u:xxxxx@db/winnow # --database-url, DATABASE_URL"},
		{"secret in the query", env{"DATABASE_URL": "postgres://db/winnow?user=u&password=hunter2"}, nil, "DATABASE_URL=postgres://db/winnow?password=xxxxx&user=u # --database-url, DATABASE_URL"},
		{"secret as keywords", env{"DATABASE_URL": "host=db user=u password='hunter2 x' dbname=winnow"}, nil, "DATABASE_URL=host=db user=u password=xxxxx dbname=winnow # --database-url, DATABASE_URL"},
		{"secret from a file", env{"DATABASE_URL_FILE": secret}, nil, "DATABASE_URL=postgres://u:xxxxx@db/winnow # --database-url, DATABASE_URL_FILE"},
		{"size", env{"WINNOW_UPLOAD_LIMIT": "500mb"}, nil, "WINNOW_UPLOAD_LIMIT=500MB # --upload-limit, WINNOW_UPLOAD_LIMIT"},
		{"switch", nil, []string{"--demo=false"}, "WINNOW_DEMO=false # --demo, flag"},
		{"home", env{"XDG_DATA_HOME": "/data"}, []string{"--data-dir", "/x/../y"}, "WINNOW_DATA_DIR=/y # --data-dir, flag"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := runWinnow(t, tt.env, append([]string{"config"}, tt.args...)...)
			if code != exitDone {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			if strings.Contains(stdout, "hunter2") {
				t.Errorf("the password is printed:\n%s", stdout)
			}
			var lines []string
			for line := range strings.Lines(stdout) {
				lines = append(lines, strings.Join(strings.Fields(line), " "))
			}
			if !slices.Contains(lines, tt.want) {
				t.Errorf("no line %q in:\n%s", tt.want, strings.Join(lines, "\n"))
			}
		})
	}
}

func TestConfigRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		env  env
		args []string
		want []string // all in the one line
	}{
		{"port in a flag", nil, []string{"--port", "99999"}, []string{"--port", "PORT", `"99999"`, "0 to 65535"}},
		{"port in the environment", env{"PORT": "http"}, nil, []string{"--port", "PORT", `"http"`, "0 to 65535"}},
		{"database URL", env{"DATABASE_URL": "postgres://u:hunter2@db:x/winnow"}, nil, []string{"--database-url", "DATABASE_URL", "postgres://user:password@host:5432/name"}},
		{"secret twice", env{"DATABASE_URL": "postgres://db/x", "DATABASE_URL_FILE": "/x"}, nil, []string{"both DATABASE_URL and DATABASE_URL_FILE"}},
		{"secret file missing", env{"DATABASE_URL_FILE": "/does/not/exist"}, nil, []string{"DATABASE_URL_FILE", "/does/not/exist"}},
		{"base URL with a path", env{"WINNOW_BASE_URL": "https://x.org/winnow"}, nil, []string{"--base-url", "WINNOW_BASE_URL", "without a path"}},
		{"host with a port", nil, []string{"--host", "localhost:80"}, []string{"--host", "WINNOW_HOST", "without a port"}},
		{"upload limit", nil, []string{"--upload-limit", "9999999TB"}, []string{"--upload-limit", "500MB or 8GB"}},
		{"timeout", nil, []string{"--round-timeout", "1s"}, []string{"--round-timeout", "WINNOW_ROUND_TIMEOUT", "from 1m"}},
		{"log level", env{"WINNOW_LOG_LEVEL": "loud"}, nil, []string{"--log-level", "WINNOW_LOG_LEVEL", "debug, info, warn, error"}},
		{"connections", nil, []string{"--database-conns", "1"}, []string{"--database-conns", "4 to 1000"}},
		{"switch", nil, []string{"--demo=maybe"}, []string{"--demo", "true or false"}},
		{"unknown flag", nil, []string{"--prot", "1"}, []string{"unknown flag: --prot"}},
		{"argument", nil, []string{"x"}, []string{"unknown command"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := runWinnow(t, tt.env, append([]string{"config"}, tt.args...)...)
			if code != exitUsage {
				t.Errorf("exit code %d, want %d", code, exitUsage)
			}
			if stdout != "" {
				t.Errorf("standard output: %q", stdout)
			}
			line, rest, _ := strings.Cut(stderr, "\n")
			for _, want := range tt.want {
				if !strings.Contains(line, want) {
					t.Errorf("%q does not say %q", line, want)
				}
			}
			if strings.Contains(line, "hunter2") {
				t.Errorf("%q gives the password away", line)
			}
			if rest != "See \"winnow config --help\".\n" {
				t.Errorf("after the error: %q", rest)
			}
		})
	}
}

func TestDefaultDataDir(t *testing.T) {
	t.Parallel()
	tests := []struct {
		euid int
		env  env
		want string
	}{
		{0, env{"HOME": "/root"}, "/var/lib/winnow"},
		{1000, env{"HOME": "/home/ann"}, "/home/ann/.local/share/winnow"},
		{1000, env{"HOME": "/home/ann", "XDG_DATA_HOME": "/data"}, "/data/winnow"},
		{1000, env{"HOME": "/home/ann", "XDG_DATA_HOME": "relative"}, "/home/ann/.local/share/winnow"},
	}
	for _, tt := range tests {
		if got := defaultDataDir(tt.euid, tt.env.get); got != tt.want {
			t.Errorf("defaultDataDir(%d, %v) = %q, want %q", tt.euid, tt.env, got, tt.want)
		}
	}
}
