package winnow

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

func exampleRecords() []LabelRecord {
	class, round, at := 0, 3, time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)
	return []LabelRecord{
		{
			ImageID: 7, SHA256: strings.Repeat("ab", 32), SourcePath: "train/fish/1, \"big\".png", Split: SplitPool, Status: "known",
			Class: "fish", ClassIndex: &class, ClassVersion: 1, Origin: EventLabel, Round: &round, Slice: SliceQuery, Rank: 2,
			Annotator: "Ann <b>", LabeledAt: &at, DurationMS: 850, Width: 64, Height: 48,
		},
		{ImageID: 8, SHA256: "00", SourcePath: `=HYPERLINK("http://x")`, Split: SplitPool, Status: "unknown", Annotator: "@ann", Width: 1, Height: 1},
		{ImageID: 9, SHA256: "01", SourcePath: "-9.png", Class: "+plus", Split: SplitTest, Status: Unlabeled, Width: 1, Height: 1},
	}
}

func export(t *testing.T, format string, records []LabelRecord) string {
	t.Helper()
	var buf bytes.Buffer
	w, err := NewLabelWriter(format, &buf)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

func TestJSONLIsExact(t *testing.T) {
	t.Parallel()
	records := exampleRecords()
	lines := strings.Split(strings.TrimSuffix(export(t, "jsonl", records), "\n"), "\n")
	if len(lines) != len(records) {
		t.Fatalf("%d lines for %d records", len(lines), len(records))
	}
	for i, line := range lines {
		var got LabelRecord
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, records[i]) {
			t.Errorf("record %d came back as %+v", i, got)
		}
	}
	if !strings.Contains(lines[0], "Ann <b>") || strings.Contains(lines[2], "labeled_at") {
		t.Errorf("unexpected text:\n%s\n%s", lines[0], lines[2])
	}
}

func TestCSV(t *testing.T) {
	t.Parallel()
	rows, err := csv.NewReader(strings.NewReader(export(t, "csv", exampleRecords()))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		csvHeader(),
		{
			"7", strings.Repeat("ab", 32), "train/fish/1, \"big\".png", "pool", "known", "fish", "0", "1", "label", "3", "query", "2",
			"Ann <b>", "2026-01-02T03:04:05.678Z", "850", "64", "48",
		},
		{"8", "00", `'=HYPERLINK("http://x")`, "pool", "unknown", "", "", "", "", "", "", "", "'@ann", "", "", "1", "1"},
		{"9", "01", "'-9.png", "test", "unlabeled", "'+plus", "", "", "", "", "", "", "", "", "", "1", "1"},
	}
	if !reflect.DeepEqual(rows, want) {
		t.Errorf("got  %q\nwant %q", rows, want)
	}
}

// The columns of the CSV form are the members of the JSON form, in their order.
func TestCSVHeaderNamesTheRecord(t *testing.T) {
	t.Parallel()
	var names []string
	record := reflect.TypeFor[LabelRecord]()
	for i := range record.NumField() {
		name, _, _ := strings.Cut(record.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	if !reflect.DeepEqual(csvHeader(), names) {
		t.Errorf("header %q\nrecord %q", csvHeader(), names)
	}
}

func TestExportOfNothing(t *testing.T) {
	t.Parallel()
	if got := export(t, "csv", nil); got != strings.Join(csvHeader(), ",")+"\n" {
		t.Errorf("csv: %q", got)
	}
	if got := export(t, "jsonl", nil); got != "" {
		t.Errorf("jsonl: %q", got)
	}
	if _, err := NewLabelWriter("xlsx", nil); ErrorCode(err) != CodeInvalid {
		t.Errorf("xlsx: %v", err)
	}
}

func TestExportReportsWriteErrors(t *testing.T) {
	t.Parallel()
	for _, format := range ExportFormats {
		w, err := NewLabelWriter(format, brokenPipe{})
		if err != nil {
			t.Fatal(err)
		}
		_ = w.Write(exampleRecords()[0])
		if err := w.Flush(); !errors.Is(err, errBroken) {
			t.Errorf("%s: %v", format, err)
		}
	}
}

var errBroken = errors.New("broken pipe")

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errBroken }

func exampleAnswers() []AnswerRecord {
	class, at := 1, time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)
	return []AnswerRecord{
		{
			ImageID: 7, SHA256: "ab", SourcePath: "train/1.png", Split: SplitPool, Round: 0, Slice: SliceAudit, Rank: 2, Annotator: "ann@example.org",
			Status: "known", Class: "=cat", ClassIndex: &class, ClassVersion: 1, Decided: "unknown", AnsweredAt: at, DurationMS: 850,
		},
		{
			ImageID: 7, SHA256: "ab", SourcePath: "train/1.png", Split: SplitPool, Round: 0, Slice: SliceGold, Rank: 3, Annotator: "+bob@example.org",
			Status: "unknown", ClassVersion: 1, Decided: "known", DecidedClass: "-dog", Gold: "false-unknown", AnsweredAt: at,
		},
	}
}

func exportAnswers(t *testing.T, format string, records []AnswerRecord) string {
	t.Helper()
	var buf bytes.Buffer
	w, err := NewAnswerWriter(format, &buf)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	records := exampleAnswers()
	for i, line := range strings.Split(strings.TrimSuffix(exportAnswers(t, "jsonl", records), "\n"), "\n") {
		var got AnswerRecord
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, records[i]) {
			t.Errorf("record %d came back as %+v", i, got)
		}
	}
	rows, err := csv.NewReader(strings.NewReader(exportAnswers(t, "csv", records))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	record := reflect.TypeFor[AnswerRecord]()
	for i := range record.NumField() {
		name, _, _ := strings.Cut(record.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	want := [][]string{
		names,
		{
			"7", "ab", "train/1.png", "pool", "0", "audit", "2", "ann@example.org", "known", "'=cat", "1", "1", "unknown", "", "",
			"2026-01-02T03:04:05.678Z", "850",
		},
		{
			"7", "ab", "train/1.png", "pool", "0", "gold", "3", "'+bob@example.org", "unknown", "", "", "1", "known", "'-dog", "false-unknown",
			"2026-01-02T03:04:05.678Z", "",
		},
	}
	if !reflect.DeepEqual(rows, want) {
		t.Errorf("got  %q\nwant %q", rows, want)
	}
	if _, err := NewAnswerWriter("xlsx", nil); ErrorCode(err) != CodeInvalid {
		t.Errorf("xlsx: %v", err)
	}
}
