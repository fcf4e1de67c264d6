package simulate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"

	"winnow"
)

// Line is one line of rounds.jsonl: a round as it began, and what came of it.
type Line struct {
	Strategy       string   `json:"strategy"`
	Seed           int64    `json:"seed"`
	Round          int      `json:"round"`
	LabeledKnown   int      `json:"labeled_known"` // before the round's query
	LabeledUnknown int      `json:"labeled_unknown"`
	TestAcc        float64  `json:"test_acc"`                 // percent
	Precision      float64  `json:"precision"`                // of the query, as the annotators see it
	TruePrecision  *float64 `json:"true_precision,omitempty"` // where the annotators err
	K              float64  `json:"k"`                        // after the round
	TrainSeconds   float64  `json:"train_s"`
	ScoreSeconds   float64  `json:"score_s"`
	QuerySeconds   float64  `json:"query_s"`
}

// labels is one line of queries.jsonl: what a round labeled. It is written before the
// round's line, so a round in rounds.jsonl always has one.
type labels struct {
	Strategy string `json:"strategy"`
	Seed     int64  `json:"seed"`
	Round    int    `json:"round"`
	Images   []int  `json:"images"` // by train image
	Labels   []int  `json:"labels"` // index of the known class, C for unknown
}

// key names one round of one run.
type key struct {
	strategy string
	seed     int64
	round    int
}

// log is the folder in which an experiment is written as it goes.
type log struct {
	dir     string
	lines   []Line
	queries map[key]labels
}

const (
	roundsFile     = "rounds.jsonl"
	queriesFile    = "queries.jsonl"
	experimentFile = "experiment.json"
)

// openLog makes dir or, when it holds the same experiment, reads how far it came. A
// last line that was cut off in the middle is taken away.
func openLog(dir string, p protocol) (*log, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, &winnow.Error{Code: winnow.CodeInvalid, Field: "out", Message: "The folder cannot be made.", Err: err}
	}
	if err := sameExperiment(filepath.Join(dir, experimentFile), p); err != nil {
		return nil, err
	}
	l := &log{dir: dir, queries: make(map[key]labels)}
	var err error
	if l.lines, err = readLines[Line](filepath.Join(dir, roundsFile)); err != nil {
		return nil, err
	}
	queries, err := readLines[labels](filepath.Join(dir, queriesFile))
	if err != nil {
		return nil, err
	}
	for _, q := range queries {
		l.queries[key{q.Strategy, q.Seed, q.Round}] = q
	}
	return l, nil
}

// sameExperiment compares the protocol with the one in file, or writes it there. A
// setting that did not exist when the file was written had what is its default now.
func sameExperiment(file string, p protocol) error {
	now, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return fmt.Errorf("describe the experiment: %w", err)
	}
	old, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return os.WriteFile(file, append(now, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("read the experiment: %w", err)
	}
	before := protocol{Settings: winnow.DefaultSettings()}
	if err := json.Unmarshal(old, &before); err != nil {
		return &winnow.Error{Code: winnow.CodeInvalid, Field: "out", Message: file + " is not an experiment's.", Err: err}
	}
	if old, err = json.Marshal(before); err != nil {
		return fmt.Errorf("describe the experiment: %w", err)
	}
	var a, b map[string]any
	if err := errors.Join(json.Unmarshal(old, &a), json.Unmarshal(now, &b)); err != nil {
		return fmt.Errorf("describe the experiment: %w", err)
	}
	if name, ok := difference("", a, b); ok {
		return winnow.Invalid("out", "%s holds another experiment: its %s differs. Choose another folder.", filepath.Dir(file), name)
	}
	return nil
}

// difference names the first member in which two JSON objects differ.
func difference(prefix string, a, b map[string]any) (string, bool) {
	for _, m := range []map[string]any{a, b} {
		for name := range m {
			x, xok := a[name].(map[string]any)
			y, yok := b[name].(map[string]any)
			if xok && yok {
				if inner, ok := difference(prefix+name+".", x, y); ok {
					return inner, true
				}
			} else if !reflect.DeepEqual(a[name], b[name]) {
				return prefix + name, true
			}
		}
	}
	return "", false
}

// readLines reads a file of JSON lines that may not be there, and cuts off what
// follows the last whole line.
func readLines[T any](file string) ([]T, error) {
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what was done: %w", err)
	}
	whole := raw[:bytes.LastIndexByte(raw, '\n')+1]
	if len(whole) < len(raw) {
		if err := os.Truncate(file, int64(len(whole))); err != nil {
			return nil, fmt.Errorf("cut off a half line: %w", err)
		}
	}
	return ParseLines[T](whole, file)
}

// ParseLines parses JSON lines; name is for its errors.
func ParseLines[T any](raw []byte, name string) ([]T, error) {
	var out []T
	for i, line := range bytes.Split(raw, []byte("\n")) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			return nil, &winnow.Error{Code: winnow.CodeInvalid, Field: fmt.Sprintf("%s:%d", name, i+1), Message: "It is not the JSON line of a round.", Err: err}
		}
		out = append(out, v)
	}
	return out, nil
}

// done returns a finished round's line and labels.
func (l *log) done(k key) (Line, labels, bool) {
	q, ok := l.queries[k]
	if !ok {
		return Line{}, labels{}, false
	}
	for _, line := range l.lines {
		if line.Strategy == k.strategy && line.Seed == k.seed && line.Round == k.round {
			return line, q, true
		}
	}
	return Line{}, labels{}, false
}

// add writes a finished round.
func (l *log) add(line Line, q labels) error {
	if err := appendLine(filepath.Join(l.dir, queriesFile), q); err != nil {
		return err
	}
	if err := appendLine(filepath.Join(l.dir, roundsFile), line); err != nil {
		return err
	}
	l.lines = append(l.lines, line)
	l.queries[key{q.Strategy, q.Seed, q.Round}] = q
	return nil
}

func appendLine(file string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("write the round: %w", err)
	}
	if _, err := f.Write(append(raw, '\n')); err != nil {
		f.Close()
		return fmt.Errorf("write the round: %w", err)
	}
	return f.Close()
}
