package app

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/pflag"
)

// option is one row of the configuration table.
type option struct {
	group  optionGroup
	flag   string
	env    string
	help   string
	secret bool // may also come from the file that the variable with _FILE names
	value  pflag.Value
}

// fromEnvironment sets the option from its variable or its file, if either is there.
func (o *option) fromEnvironment(getenv func(string) string, c *Config) error {
	text, source := getenv(o.env), o.env
	if o.secret {
		if path := getenv(o.env + "_FILE"); path != "" {
			if text != "" {
				return usagef("both %s and %s_FILE are set; give one of them", o.env, o.env)
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return usagef("cannot read the file that %s_FILE names: %w", o.env, err)
			}
			text, source = strings.TrimSpace(string(data)), o.env+"_FILE"
		}
	}
	if text == "" {
		return nil
	}
	if err := o.value.Set(text); err != nil {
		return o.invalid(text, err)
	}
	c.sources[o.flag] = source
	return nil
}

// invalid says that the option cannot be text, without giving away a secret.
func (o *option) invalid(text string, err error) error {
	if o.secret {
		return usagef("invalid --%s (%s): %w", o.flag, o.env, err)
	}
	return usagef("invalid --%s (%s) %q: %w", o.flag, o.env, text, err)
}

// value is a pflag.Value over a field of Config.
type value[T any] struct {
	p      *T
	kind   string
	parse  func(string) (T, error)
	format func(T) string
}

func newValue[T any](p *T, kind string, parse func(string) (T, error), format func(T) string) *value[T] {
	return &value[T]{p, kind, parse, format}
}

func (v *value[T]) String() string { return v.format(*v.p) }
func (v *value[T]) Type() string   { return v.kind }

func (v *value[T]) Set(text string) error {
	parsed, err := v.parse(text)
	if err == nil {
		*v.p = parsed
	}
	return err
}

// boolValue is a flag that may stand without a value.
type boolValue struct{ *value[bool] }

func (boolValue) IsBoolFlag() bool { return true }

func newBool(p *bool) pflag.Value {
	parse := func(text string) (bool, error) {
		b, err := strconv.ParseBool(text)
		if err != nil {
			return false, errors.New("it is true or false")
		}
		return b, nil
	}
	return boolValue{newValue(p, "bool", parse, strconv.FormatBool)}
}

func newInt(p *int, least, most int) pflag.Value {
	return newValue(p, "number", func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			return 0, fmt.Errorf("it is a number from %d to %d", least, most)
		}
		return n, nil
	}, strconv.Itoa)
}

func newChoice(p *string, choices ...string) pflag.Value {
	return newValue(p, "word", func(text string) (string, error) {
		if !slices.Contains(choices, text) {
			return "", fmt.Errorf("it is one of %s", strings.Join(choices, ", "))
		}
		return text, nil
	}, verbatim)
}

func verbatim(s string) string           { return s }
func parseText(s string) (string, error) { return s, nil }

func parseName(s string) (string, error) {
	if strings.TrimSpace(s) != s || s == "" {
		return "", errors.New("it has no blanks and is not empty")
	}
	return s, nil
}

func parseHost(s string) (string, error) {
	if s == "" || strings.ContainsAny(s, "/ ") || (strings.Contains(s, ":") && net.ParseIP(s) == nil) {
		return "", errors.New("it is a host name or an address, without a port")
	}
	return s, nil
}

func parseBaseURL(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return "", errors.New("it is of the form https://winnow.example.org, without a path")
	}
	return u.Scheme + "://" + u.Host, nil
}

func parseTimeout(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < time.Minute || d > 30*24*time.Hour {
		return 0, errors.New("it is a duration such as 90m or 48h, from 1m to 720h")
	}
	return d, nil
}

// parseDatabaseURL checks the form; the driver's own words repeat the password.
func parseDatabaseURL(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	if _, err := pgx.ParseConfig(s); err != nil {
		return "", errors.New("it is of the form postgres://user:password@host:5432/name")
	}
	return s, nil
}

var dsnPassword = regexp.MustCompile(`(?i)(\bpassword\s*=\s*)('(?:[^'\\]|\\.)*'|\S+)`)

// redactDatabaseURL hides the password of a URL or a keyword string.
func redactDatabaseURL(s string) string {
	if !strings.Contains(s, "://") {
		return dsnPassword.ReplaceAllString(s, "${1}xxxxx")
	}
	u, err := url.Parse(s)
	if err != nil {
		return "xxxxx"
	}
	if q := u.Query(); q.Has("password") {
		q.Set("password", "xxxxx")
		u.RawQuery = q.Encode()
	}
	return u.Redacted()
}

var sizeUnits = []struct {
	suffix string
	bytes  int64
}{{"TB", 1 << 40}, {"GB", 1 << 30}, {"MB", 1 << 20}, {"KB", 1 << 10}, {"B", 1}}

func parseSize(s string) (int64, error) {
	number, unit := s, int64(1)
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(strings.ToUpper(s), u.suffix); ok {
			number, unit = rest, u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || n <= 0 || n > (1<<50)/unit {
		return 0, errors.New("it is a size such as 500MB or 8GB")
	}
	return n * unit, nil
}

func formatSize(n int64) string {
	for _, u := range sizeUnits {
		if n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.suffix
		}
	}
	return strconv.FormatInt(n, 10)
}
