package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"winnow"
)

type labelsInput struct {
	InProject
	Format  string       `query:"format" enum:"jsonl,csv" doc:"Without it, what Accept asks for, or else jsonl."`
	Accept  string       `header:"Accept"`
	Round   int          `query:"round" minimum:"-1" default:"-1" doc:"Only the images that the round with this number asked about."`
	Status  []string     `query:"status" enum:"known,unknown,skip,unreadable,unlabeled" doc:"Only these, separated by commas. Without it, every decided image."`
	Split   winnow.Split `query:"split" enum:"pool,test" default:"pool"`
	Answers bool         `query:"answers" doc:"One row an answer, of every annotator, instead of one an image. Needs a token of an admin."`
}

// format is the one asked for by name, or else by Accept.
func (in *labelsInput) format() string {
	if in.Format != "" {
		return in.Format
	}
	if in.Accept == "text/csv" {
		return "csv"
	}
	return "jsonl"
}

func (in *labelsInput) filter() winnow.LabelFilter {
	f := winnow.LabelFilter{Statuses: in.Status, Split: in.Split}
	if in.Round >= 0 {
		f.Round = &in.Round
	}
	return f
}

// flushEvery is how many rows go out together: few enough that the reader sees a
// steady stream, many enough that a million rows are not a million writes.
const flushEvery = 2000

// writeTime is how long one such batch may take to reach a slow reader.
const writeTime = 15 * time.Second

func (s *service) labels(ctx context.Context, in *labelsInput) (*huma.StreamResponse, error) {
	id, err := s.allow(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if in.Answers {
		if _, _, err := s.allowAdmin(ctx, in.ID); err != nil {
			return nil, err
		}
		if slices.Contains(in.Status, winnow.Unlabeled) {
			return nil, winnow.Invalid("status", "The status of an answer is known, unknown, skip or unreadable.")
		}
	}
	if in.Round >= 0 {
		if _, err := s.store.Round(ctx, id, in.Round); err != nil {
			return nil, err
		}
	}
	return &huma.StreamResponse{Body: func(hctx huma.Context) {
		_, w := humachi.Unwrap(hctx)
		if err := s.writeLabels(ctx, w, id, in); err != nil {
			if !errors.Is(err, context.Canceled) {
				s.log.ErrorContext(ctx, "export ended early", "project", int64(id), "error", err)
			}
			// The rows so far are out with status 200: only a broken connection still
			// tells the reader that they are not all.
			panic(http.ErrAbortHandler)
		}
	}}, nil
}

func (s *service) writeLabels(ctx context.Context, w http.ResponseWriter, id winnow.ProjectID, in *labelsInput) error {
	name, format := "labels", in.format()
	if in.Answers {
		name = "answers"
	}
	w.Header().Set("Content-Type", winnow.ExportMediaType(format))
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s-%d.%s"`, name, id, format))
	w.Header().Set("Cache-Control", "no-store")
	if in.Answers {
		rows, err := winnow.NewAnswerWriter(format, w)
		if err != nil {
			return err
		}
		return stream(w, rows, func(fn func(winnow.AnswerRecord) error) error {
			return s.store.ExportAnswers(ctx, id, in.filter(), fn)
		})
	}
	rows, err := winnow.NewLabelWriter(format, w)
	if err != nil {
		return err
	}
	return stream(w, rows, func(fn func(winnow.LabelRecord) error) error {
		return s.store.ExportLabels(ctx, id, in.filter(), fn)
	})
}

// rows writes records of one kind.
type rows[T any] interface {
	Write(T) error
	Flush() error
}

// stream sends the records that export gives as they come.
func stream[T any](w http.ResponseWriter, out rows[T], export func(fn func(T) error) error) error {
	rc := http.NewResponseController(w)
	flush := func() error {
		if err := rc.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
			return err
		}
		if err := out.Flush(); err != nil {
			return err
		}
		return rc.Flush()
	}
	n := 0
	err := export(func(record T) error {
		if err := out.Write(record); err != nil {
			return err
		}
		// The first row goes out at once: it shows the reader that rows come.
		if n++; n == 1 || n%flushEvery == 0 {
			return flush()
		}
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }
