package winnow

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"time"
)

// LabelWriter writes exported records one after the other; Flush ends the export.
// It keeps nothing back that it does not need, so that exports stream.
type LabelWriter interface {
	Write(LabelRecord) error
	Flush() error
}

// AnswerWriter is a LabelWriter of answers.
type AnswerWriter interface {
	Write(AnswerRecord) error
	Flush() error
}

// ExportFormats are the formats of exports, by the names users give them.
var ExportFormats = []string{"jsonl", "csv"}

// ExportMediaType returns the media type of a format.
func ExportMediaType(format string) string {
	if format == "csv" {
		return "text/csv; charset=utf-8; header=present"
	}
	return "application/jsonl"
}

// NewLabelWriter returns a writer of the named format.
func NewLabelWriter(format string, w io.Writer) (LabelWriter, error) {
	switch format {
	case "jsonl":
		return NewJSONLWriter(w), nil
	case "csv":
		return NewCSVWriter(w), nil
	default:
		return nil, errFormat(format)
	}
}

// NewAnswerWriter returns a writer of answers in the named format.
func NewAnswerWriter(format string, w io.Writer) (AnswerWriter, error) {
	switch format {
	case "jsonl":
		return answerJSONL{NewJSONLWriter(w)}, nil
	case "csv":
		return answerCSV{newCSV(w, answerHeader())}, nil
	default:
		return nil, errFormat(format)
	}
}

func errFormat(format string) error {
	return Invalid("format", "%q is not one of %s.", clip(format, 40), strings.Join(ExportFormats, ", "))
}

// JSONLWriter writes a JSON object a line: the exact form, for programs. A member
// that has no value is left out.
type JSONLWriter struct {
	buf *bufio.Writer
	enc *json.Encoder
}

// NewJSONLWriter returns a JSONLWriter on w.
func NewJSONLWriter(w io.Writer) *JSONLWriter {
	buf := bufio.NewWriterSize(w, 1<<16)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	return &JSONLWriter{buf: buf, enc: enc}
}

// Write writes a record.
func (w *JSONLWriter) Write(r LabelRecord) error { return w.enc.Encode(r) }

// Flush writes what is buffered.
func (w *JSONLWriter) Flush() error { return w.buf.Flush() }

// CSVWriter writes a header and a row a record: the form for spreadsheets, with
// the columns named as the members of the JSON form. What has no value is empty.
//
// File names, class names and people's names come from outside, and a spreadsheet
// runs a cell that begins like a formula. Such a cell is written with a leading
// apostrophe, which a spreadsheet takes for "this is text". Programs that need the
// exact text read the JSON form.
type CSVWriter struct {
	csv *csv.Writer
	row []string
}

// NewCSVWriter returns a CSVWriter on w. The header is written at once, so that an
// export of nothing has it too.
func NewCSVWriter(w io.Writer) *CSVWriter { return newCSV(w, csvHeader()) }

func newCSV(w io.Writer, header []string) *CSVWriter {
	c := &CSVWriter{csv: csv.NewWriter(w)}
	_ = c.csv.Write(header) // an error is kept, and returned by Flush
	return c
}

func csvHeader() []string {
	return []string{
		"image_id", "sha256", "source_path", "split", "status", "class", "class_index", "class_version", "origin",
		"round", "slice", "rank", "annotator", "labeled_at", "duration_ms", "width", "height",
	}
}

// Write writes a record.
func (w *CSVWriter) Write(r LabelRecord) error {
	w.row = append(w.row[:0],
		strconv.FormatInt(int64(r.ImageID), 10),
		r.SHA256,
		csvText(r.SourcePath),
		string(r.Split),
		r.Status,
		csvText(r.Class),
		csvPointer(r.ClassIndex),
		csvInt(int64(r.ClassVersion)),
		string(r.Origin),
		csvPointer(r.Round),
		string(r.Slice),
		csvInt(int64(r.Rank)),
		csvText(r.Annotator),
		csvTime(r.LabeledAt),
		csvInt(r.DurationMS),
		strconv.Itoa(r.Width),
		strconv.Itoa(r.Height),
	)
	return w.csv.Write(w.row)
}

// Flush writes what is buffered and returns the first error there was.
func (w *CSVWriter) Flush() error {
	w.csv.Flush()
	return w.csv.Error()
}

// answerJSONL writes an answer a line, answerCSV an answer a row.
type (
	answerJSONL struct{ *JSONLWriter }
	answerCSV   struct{ *CSVWriter }
)

// Write writes a record.
func (w answerJSONL) Write(r AnswerRecord) error { return w.enc.Encode(r) }

func answerHeader() []string {
	return []string{
		"image_id", "sha256", "source_path", "split", "round", "slice", "rank", "annotator", "status", "class", "class_index",
		"class_version", "decided", "decided_class", "gold", "answered_at", "duration_ms",
	}
}

// Write writes a record.
func (w answerCSV) Write(r AnswerRecord) error {
	w.row = append(w.row[:0],
		strconv.FormatInt(int64(r.ImageID), 10),
		r.SHA256,
		csvText(r.SourcePath),
		string(r.Split),
		strconv.Itoa(r.Round),
		string(r.Slice),
		strconv.Itoa(r.Rank),
		csvText(r.Annotator),
		r.Status,
		csvText(r.Class),
		csvPointer(r.ClassIndex),
		strconv.Itoa(r.ClassVersion),
		r.Decided,
		csvText(r.DecidedClass),
		r.Gold,
		csvTime(&r.AnsweredAt),
		csvInt(r.DurationMS),
	)
	return w.csv.Write(w.row)
}

// csvText keeps a spreadsheet from running s.
func csvText(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r\n", rune(s[0])) {
		return "'" + s
	}
	return s
}

func csvPointer(v *int) string {
	if v == nil {
		return ""
	}
	return strconv.Itoa(*v)
}

func csvInt(v int64) string {
	if v == 0 {
		return ""
	}
	return strconv.FormatInt(v, 10)
}

func csvTime(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}
