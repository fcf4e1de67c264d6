package app

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"winnow"
	"winnow/db"
)

func (c *cli) newExportCommand() *cobra.Command {
	var (
		project, format, output, split string
		round                          int
		statuses                       []string
		answers                        bool
	)
	cmd := &cobra.Command{
		Use:   "export --project P",
		Short: "Write a project's labels to a file",
		Long: `Write a project's labels, one record an image, in the order of the images. JSONL is
the exact form, for programs. CSV is for spreadsheets: text that one would run as
a formula has an apostrophe before it.

With --answers, one record an answer instead: what each annotator said of an image,
beside what it was decided to be, by round and image. --status is then that of the
answer.

The file appears when it is complete; one that was there before is replaced then.`,
		Example: `  winnow export --project Birds -o birds.jsonl
  winnow export --project Birds --format csv --status known,unknown -o birds.csv
  winnow export --project Birds --round 3 | jq .class
  winnow export --project Birds --answers -o answers.csv`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if format == "" {
				format = formatOf(output)
			}
			if _, err := winnow.NewLabelWriter(format, io.Discard); err != nil {
				return &usageError{err}
			}
			store, closeStore, err := c.openStore(ctx)
			if err != nil {
				return err
			}
			defer closeStore()
			p, err := store.FindProject(ctx, project)
			if err != nil {
				return err
			}
			filter := winnow.LabelFilter{Statuses: statuses, Split: winnow.Split(split)}
			if cmd.Flags().Changed("round") {
				if _, err := store.Round(ctx, p.ID, round); err != nil {
					return err
				}
				filter.Round = &round
			}
			var n int64
			write := func(w io.Writer) (err error) {
				export := exportLabels
				if answers {
					export = exportAnswers
				}
				n, err = export(ctx, store, p.ID, filter, format, w)
				return err
			}
			if output == "-" {
				return write(cmd.OutOrStdout())
			}
			if err := writeFile(output, write); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s of %q.\n", output, count(n, "record", "records"), p.Name)
			return nil
		},
	}
	cmd.Flags().StringVar(&project, "project", "", "name or number of the project")
	cmd.Flags().StringVar(&format, "format", "", strings.Join(winnow.ExportFormats, " or ")+"; by default as the name of FILE ends, or jsonl")
	cmd.Flags().StringVarP(&output, "output", "o", "-", "`FILE` to write; - for the standard output")
	cmd.Flags().IntVar(&round, "round", 0, "only what the round with this number asked")
	cmd.Flags().StringSliceVar(&statuses, "status", nil, "only these, of known, unknown, skip, unreadable, unlabeled; default: all that is decided")
	cmd.Flags().StringVar(&split, "split", "pool", "pool or test")
	cmd.Flags().BoolVar(&answers, "answers", false, "one record an answer, of every annotator, instead of one an image")
	_ = cmd.MarkFlagRequired("project")
	return c.withOptions(cmd, optionsDatabase, optionsLog)
}

// formatOf guesses the format from the name of the file.
func formatOf(output string) string {
	if strings.EqualFold(filepath.Ext(output), ".csv") {
		return "csv"
	}
	return "jsonl"
}

// exportLabels streams the records to w and returns how many there were.
func exportLabels(ctx context.Context, store *db.Store, project winnow.ProjectID, f winnow.LabelFilter, format string, w io.Writer) (n int64, err error) {
	out, err := winnow.NewLabelWriter(format, w)
	if err != nil {
		return 0, err
	}
	err = store.ExportLabels(ctx, project, f, func(r winnow.LabelRecord) error {
		n++
		return out.Write(r)
	})
	if err != nil {
		return n, err
	}
	return n, out.Flush()
}

// exportAnswers is exportLabels for what each annotator said.
func exportAnswers(ctx context.Context, store *db.Store, project winnow.ProjectID, f winnow.LabelFilter, format string, w io.Writer) (n int64, err error) {
	out, err := winnow.NewAnswerWriter(format, w)
	if err != nil {
		return 0, err
	}
	err = store.ExportAnswers(ctx, project, f, func(r winnow.AnswerRecord) error {
		n++
		return out.Write(r)
	})
	if err != nil {
		return n, err
	}
	return n, out.Flush()
}

// writeFile lets write fill a new file beside name, and puts it in the place of name
// when it is complete. What is no ordinary file, such as a pipe, is written directly.
func writeFile(name string, write func(io.Writer) error) error {
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return unwritable(name, err)
		}
		return errors.Join(write(f), f.Close())
	}
	temporary := filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+"."+rand.Text()[:8]+".tmp")
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return unwritable(name, err)
	}
	buf := bufio.NewWriter(f)
	err = write(buf)
	if err == nil {
		err = buf.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(temporary, name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	return nil
}

func unwritable(name string, err error) error {
	return &winnow.Error{Code: winnow.CodeInvalid, Field: name, Message: "The file cannot be written.", Err: err}
}
