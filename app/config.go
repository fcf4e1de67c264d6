package app

import (
	"os"
	"path/filepath"
	"time"

	"winnow/web"
)

// Config is everything that Winnow can be told from outside. Its options are one
// table, below: each is a flag, an environment variable, and for secrets also a
// file named by the variable with _FILE.
type Config struct {
	DatabaseURL   string // empty: a private Postgres in DataDir
	DatabaseConns int
	DataDir       string
	PostgresBin   string // directory of initdb and pg_ctl; empty: look for them

	Host        string
	Port        int
	BaseURL     string // what links begin with; empty: http://Host:Port
	UploadLimit int64  // bytes of one upload
	TrustProxy  bool   // a reverse proxy in front says who asks
	Metrics     string // who may read /metrics

	Backend      string
	Rounds       int // rounds at a time in one process
	RoundTimeout time.Duration
	Memory       int64 // bytes that the garbage collector tries to stay below
	Demo         bool

	LogLevel  string
	LogFormat string

	sources map[string]string // by flag: where a value came from, if not the default
}

// optionGroup says which commands an option belongs to.
type optionGroup string

const (
	optionsDatabase optionGroup = "database"
	optionsWeb      optionGroup = "web"
	optionsBackend  optionGroup = "backend"
	optionsWorker   optionGroup = "worker"
	optionsDev      optionGroup = "dev"
	optionsLog      optionGroup = "log"
)

func newConfig(getenv func(string) string) Config {
	return Config{
		DatabaseConns: 10,
		DataDir:       defaultDataDir(os.Geteuid(), getenv),
		Host:          "127.0.0.1",
		Port:          8080,
		UploadLimit:   8 << 30,
		Metrics:       web.MetricsPrivate,
		Backend:       "go",
		Rounds:        1,
		RoundTimeout:  48 * time.Hour,
		Memory:        1536 << 20,
		Demo:          true,
		LogLevel:      "info",
		LogFormat:     "auto",
		sources:       map[string]string{},
	}
}

// options is the table of all options. The values lead into c.
func (c *Config) options() []option {
	return []option{
		{
			group: optionsDatabase, flag: "database-url", env: "DATABASE_URL", secret: true,
			help:  "Postgres to use, as postgres://user:password@host:port/name; without it, a private one in the data directory",
			value: newValue(&c.DatabaseURL, "url", parseDatabaseURL, redactDatabaseURL),
		},
		{
			group: optionsDatabase, flag: "database-conns", env: "WINNOW_DATABASE_CONNS",
			help:  "connections to the database at most",
			value: newInt(&c.DatabaseConns, 4, 1000),
		},
		{
			group: optionsDatabase, flag: "data-dir", env: "WINNOW_DATA_DIR",
			help:  "where the private Postgres keeps its data",
			value: newValue(&c.DataDir, "dir", filepath.Abs, verbatim),
		},
		{
			group: optionsDatabase, flag: "postgres-bin", env: "WINNOW_POSTGRES_BIN",
			help:  "directory of Postgres's programs, for the private Postgres; looked for when empty",
			value: newValue(&c.PostgresBin, "dir", parseText, verbatim),
		},
		{
			group: optionsWeb, flag: "host", env: "WINNOW_HOST",
			help:  "address to listen on; 0.0.0.0 for all",
			value: newValue(&c.Host, "host", parseHost, verbatim),
		},
		{
			group: optionsWeb, flag: "port", env: "PORT",
			help:  "port to listen on",
			value: newInt(&c.Port, 0, 65535),
		},
		{
			group: optionsWeb, flag: "base-url", env: "WINNOW_BASE_URL",
			help:  "where people reach the server, for links; https makes cookies secure; default http://host:port",
			value: newValue(&c.BaseURL, "url", parseBaseURL, verbatim),
		},
		{
			group: optionsWeb, flag: "upload-limit", env: "WINNOW_UPLOAD_LIMIT",
			help:  "largest upload",
			value: newValue(&c.UploadLimit, "size", parseSize, formatSize),
		},
		{
			group: optionsWeb, flag: "trust-proxy", env: "WINNOW_TRUST_PROXY",
			help:  "believe X-Forwarded-For: a reverse proxy of yours sets it",
			value: newBool(&c.TrustProxy),
		},
		{
			group: optionsWeb, flag: "metrics", env: "WINNOW_METRICS",
			help:  "who may read /metrics: private (this machine and private networks), all or off",
			value: newChoice(&c.Metrics, web.MetricsPrivate, web.MetricsAll, web.MetricsOff),
		},
		{
			group: optionsBackend, flag: "backend", env: "WINNOW_BACKEND",
			help:  "what computes: go, xla:cpu, xla:cuda, xla:/path/to/plugin.so, onnx or onnx:/path/to/libonnxruntime.so",
			value: newValue(&c.Backend, "name", parseName, verbatim),
		},
		{
			group: optionsWorker, flag: "rounds", env: "WINNOW_ROUNDS",
			help:  "rounds that this process trains at a time",
			value: newInt(&c.Rounds, 1, 64),
		},
		{
			group: optionsWorker, flag: "round-timeout", env: "WINNOW_ROUND_TIMEOUT",
			help:  "a round that trains for longer fails",
			value: newValue(&c.RoundTimeout, "duration", parseTimeout, time.Duration.String),
		},
		{
			group: optionsWorker, flag: "memory", env: "WINNOW_MEMORY",
			help:  "memory to stay below where training allows it; raise it for pools of hundreds of thousands",
			value: newValue(&c.Memory, "size", parseSize, formatSize),
		},
		{
			group: optionsDev, flag: "demo", env: "WINNOW_DEMO",
			help:  "make the demo project when there is no project",
			value: newBool(&c.Demo),
		},
		{
			group: optionsLog, flag: "log-level", env: "WINNOW_LOG_LEVEL",
			help:  "debug, info, warn or error",
			value: newChoice(&c.LogLevel, "debug", "info", "warn", "error"),
		},
		{
			group: optionsLog, flag: "log-format", env: "WINNOW_LOG_FORMAT",
			help:  "text, json, or auto: text on a terminal",
			value: newChoice(&c.LogFormat, "auto", "text", "json"),
		},
	}
}

// defaultDataDir follows the XDG convention. Root gets a system directory: its
// home is closed to the user that Postgres runs as.
func defaultDataDir(euid int, getenv func(string) string) string {
	if euid == 0 {
		return "/var/lib/winnow"
	}
	if dir := getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "winnow")
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "share", "winnow")
	}
	return filepath.Join(os.TempDir(), "winnow")
}
