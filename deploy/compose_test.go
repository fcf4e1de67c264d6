// Package deploy_test holds the deployment files against the program that they start.
package deploy_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"winnow/app"
)

type compose struct {
	Services map[string]service           `yaml:"services"`
	Secrets  map[string]map[string]string `yaml:"secrets"`
	Volumes  map[string]any               `yaml:"volumes"`
}

type service struct {
	Image       string            `yaml:"image"`
	Build       map[string]string `yaml:"build"`
	Command     []string          `yaml:"command"`
	Environment map[string]string `yaml:"environment"`
	Secrets     []string          `yaml:"secrets"`
	Volumes     []string          `yaml:"volumes"`
	DependsOn   map[string]struct {
		Condition string `yaml:"condition"`
	} `yaml:"depends_on"`
	Healthcheck struct {
		Test    []string `yaml:"test"`
		Disable bool     `yaml:"disable"`
	} `yaml:"healthcheck"`
}

func readCompose(t *testing.T) compose {
	t.Helper()
	data, err := os.ReadFile("../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	var c compose
	if err := yaml.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	if len(c.Services) < 4 {
		t.Fatalf("docker-compose.yml has %d services", len(c.Services))
	}
	return c
}

// TestComposeStartsTheProgram asks the program itself whether it takes what each of its
// services is given: the command, the health check and every variable with its value.
func TestComposeStartsTheProgram(t *testing.T) {
	t.Parallel()
	for name, s := range readCompose(t).Services {
		if !strings.HasPrefix(s.Image, "winnow") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if len(s.Command) == 0 {
				t.Error("no command")
			}
			help(t, s.Command)
			if s.Healthcheck.Disable == (len(s.Healthcheck.Test) > 0) {
				t.Error("a service has a health check, or says that it needs none")
			}
			if test := s.Healthcheck.Test; len(test) > 0 {
				if diff := cmp.Diff([]string{"CMD", "winnow"}, test[:2]); diff != "" {
					t.Errorf("health check (-want +got):\n%s", diff)
				}
				help(t, test[2:])
			}
			for _, problem := range misconfigured(t, s.Environment) {
				t.Error(problem)
			}
		})
	}
}

// TestComposeSeesBadVariables shows that a wrong variable would not go unnoticed.
func TestComposeSeesBadVariables(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		env  map[string]string
		want []string
	}{
		"good":          {map[string]string{"DATABASE_URL_FILE": "/run/secrets/database_url", "WINNOW_BASE_URL": "${X:-http://localhost:8080}"}, nil},
		"misspelt":      {map[string]string{"WINNOW_BACKENDS": "go"}, []string{"WINNOW_BACKENDS is no option of winnow"}},
		"no file of it": {map[string]string{"WINNOW_HOST_FILE": "/run/secrets/x"}, []string{"WINNOW_HOST_FILE is no option of winnow"}},
		"wrong value":   {map[string]string{"WINNOW_ROUNDS": "many"}, []string{"winnow config exits 2"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, misconfigured(t, tt.env)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// TestComposeHangsTogether holds the names that one part of the file uses of another.
func TestComposeHangsTogether(t *testing.T) {
	t.Parallel()
	c := readCompose(t)
	for name, s := range c.Services {
		for other, on := range s.DependsOn {
			want := map[string]string{"migrate": "service_completed_successfully"}[other]
			if want == "" {
				want = "service_healthy"
			}
			if _, ok := c.Services[other]; !ok || on.Condition != want {
				t.Errorf("%s waits for %s to be %s, want %s", name, other, on.Condition, want)
			}
		}
		for _, secret := range s.Secrets {
			if c.Secrets[secret]["file"] != "deploy/secrets/"+secret {
				t.Errorf("%s wants the secret %s, which is %v", name, secret, c.Secrets[secret])
			}
		}
		for _, v := range s.Volumes {
			volume, _, _ := strings.Cut(v, ":")
			if _, ok := c.Volumes[volume]; !ok {
				t.Errorf("%s mounts the volume %s, which is not declared", name, volume)
			}
		}
		for variable, value := range s.Environment {
			secret, ok := strings.CutPrefix(value, "/run/secrets/")
			if strings.HasSuffix(variable, "_FILE") && (!ok || !slices.Contains(s.Secrets, secret)) {
				t.Errorf("%s: %s=%s is not one of its secrets %v", name, variable, value, s.Secrets)
			}
		}
	}
	script, err := os.ReadFile("secrets.sh")
	if err != nil {
		t.Fatal(err)
	}
	for secret := range c.Secrets {
		if !strings.Contains(string(script), ">secrets/"+secret) {
			t.Errorf("secrets.sh does not make %s", secret)
		}
	}
}

// TestDockerfile holds the image against the program and the file that builds it.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	// Instructions, with their continued lines joined.
	text := regexp.MustCompile(`(?m)^\s*#.*\n`).ReplaceAllString(string(data), "")
	text = strings.ReplaceAll(text, "\\\n", " ")

	stages := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^FROM \S+ AS (\S+)$`).FindAllStringSubmatch(text, -1) {
		stages[m[1]] = true
	}
	for name, s := range readCompose(t).Services {
		if target, ok := s.Build["target"]; ok && !stages[target] {
			t.Errorf("the service %s is built from the stage %s, which is not there", name, target)
		}
	}
	for _, command := range regexp.MustCompile(`"winnow"((?:, "[^"]+")+)\]`).FindAllStringSubmatch(text, -1) {
		help(t, strings.Fields(strings.NewReplacer(",", "", `"`, "").Replace(command[1])))
	}
	env := map[string]string{}
	for _, m := range regexp.MustCompile(`\b((?:WINNOW_|DATABASE_URL|PORT\b)[A-Z_]*)=(\S+)`).FindAllStringSubmatch(text, -1) {
		env[m[1]] = m[2]
	}
	if len(env) < 2 {
		t.Errorf("found only the variables %v", env)
	}
	for _, problem := range misconfigured(t, env) {
		t.Error(problem)
	}
	if !regexp.MustCompile(`(?m)^USER \d+$`).MatchString(text) {
		t.Error("the image runs as root")
	}
}

// misconfigured lists what `winnow config` does not take of a service's environment.
func misconfigured(t *testing.T, environment map[string]string) []string {
	t.Helper()
	env := map[string]string{}
	for name, value := range environment {
		// What Compose puts where a variable of the host is not set.
		value = regexp.MustCompile(`\$\{\w+:-([^}]*)\}`).ReplaceAllString(value, "$1")
		if strings.HasSuffix(name, "_FILE") {
			file := filepath.Join(t.TempDir(), "secret")
			if err := os.WriteFile(file, []byte("postgres://winnow:secret@postgres:5432/winnow?sslmode=disable"), 0o600); err != nil {
				t.Fatal(err)
			}
			value = file
		}
		env[name] = value
	}
	var out bytes.Buffer
	if code := app.Main(t.Context(), []string{"config"}, func(name string) string { return env[name] }, &out); code != 0 {
		return []string{fmt.Sprintf("winnow config exits %d", code)}
	}
	var problems []string
	for name := range env {
		// `winnow config` ends each line with where the value is from.
		option := strings.TrimSuffix(name, "_FILE")
		if !regexp.MustCompile(`(?m)^` + option + `=.*, ` + name + `$`).MatchString(out.String()) {
			problems = append(problems, name+" is no option of winnow")
		}
	}
	slices.Sort(problems)
	return problems
}

// help fails unless winnow has the command.
func help(t *testing.T, command []string) {
	t.Helper()
	var out bytes.Buffer
	code := app.Main(t.Context(), slices.Concat(command, []string{"--help"}), func(string) string { return "" }, &out)
	// An unknown command shows the help of the one above it.
	if usage := "Usage:\n  winnow " + strings.Join(command[:min(2, len(command))], " "); code != 0 || !strings.Contains(out.String(), usage) {
		t.Errorf("winnow has no command %q (exit code %d)", command, code)
	}
}
