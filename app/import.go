package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"winnow"
	"winnow/imaging"
	"winnow/jobs"
)

func (c *cli) newImportCommand() *cobra.Command {
	var (
		project, split, prefix string
		labeled                bool
	)
	cmd := &cobra.Command{
		Use:   "import --project P PATH...",
		Short: "Bring images into a project",
		Long: `Bring the images of folders, ZIP archives or single files into a project. PNG, JPEG,
GIF, WebP, BMP and TIFF are read. An image is known by its content: importing it
again adds nothing, so an import that was stopped can simply be run again. Files
that cannot be taken are listed and the rest goes in; the exit code is 1 only if
nothing could be taken, or the import ended early.

With --labeled the folder that an image lies in is its label: the known class of that
name, or the unknown class where no known class has the name.`,
		Example: `  winnow import --project Birds photos/ more.zip
  winnow import --project CIFAR --prefix train/ cifar10.zip
  winnow import --project CIFAR --prefix test/ --split test --labeled cifar10.zip`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if split != string(winnow.SplitPool) && split != string(winnow.SplitTest) {
				return usagef("invalid --split %q: it is pool or test", split)
			}
			ctx := cmd.Context()
			store, closeStore, err := c.openStore(ctx)
			if err != nil {
				return err
			}
			defer closeStore()
			p, err := store.FindProject(ctx, project)
			if err != nil {
				return err
			}
			importer := jobs.NewImporter(store, imaging.DefaultLimits())
			req := jobs.ImportRequest{Project: p, Prefix: prefix, Split: winnow.Split(split), Labeled: labeled}
			var failed []error
			for _, path := range args {
				err := c.importPath(ctx, cmd.OutOrStdout(), importer, req, path)
				if ctx.Err() != nil {
					return err
				}
				failed = append(failed, err)
			}
			return errors.Join(failed...)
		},
	}
	cmd.Flags().StringVar(&project, "project", "", "name or number of the project")
	cmd.Flags().StringVar(&split, "split", "pool", "what the images are for: pool, to be queried and labeled, or test, held out")
	cmd.Flags().StringVar(&prefix, "prefix", "", "take only what lies in this folder of PATH")
	cmd.Flags().BoolVar(&labeled, "labeled", false, "take the folder of each image as its label")
	_ = cmd.MarkFlagRequired("project")
	return c.withOptions(cmd, optionsDatabase, optionsLog)
}

// importPath imports one folder or file, and says on out what came of it.
func (c *cli) importPath(ctx context.Context, out io.Writer, importer *jobs.Importer, req jobs.ImportRequest, path string) error {
	source, err := imaging.Open(path)
	if err != nil {
		return err
	}
	defer source.Close()
	bar := newBar(c.stderr, source.Name())
	req.Source, req.Progress = source, func(i winnow.Import) { bar.show(i.Done, i.Total) }
	report, err := importer.Import(ctx, req)
	bar.clear()
	for _, p := range report.Problems {
		fmt.Fprintf(out, "not imported: %s: %s\n", p.Path, p.Reason)
	}
	if more := report.Failed - int64(len(report.Problems)); more > 0 {
		fmt.Fprintf(out, "not imported: %s more\n", count(more, "file", "files"))
	}
	if report.Total > 0 {
		fmt.Fprintln(out, importSummary(req, report))
	}
	if err == nil && report.Failed == report.Total {
		return winnow.Errorf(winnow.CodeInvalid, "Nothing of %s could be imported.", source.Name())
	}
	return err
}

// importSummary is the closing line of an import.
func importSummary(req jobs.ImportRequest, r winnow.Import) string {
	where := "pool"
	if req.Split == winnow.SplitTest {
		where = "test images"
	}
	parts := []string{fmt.Sprintf("%s: %s added to the %s of %q", r.Source, count(r.Added, "image", "images"), where, req.Project.Name)}
	for _, p := range []struct {
		n         int64
		one, many string
	}{
		{r.Duplicates, "was there already", "were there already"},
		{r.Failed, "could not be imported", "could not be imported"},
		{r.Total - r.Done, "not looked at", "not looked at"},
		{r.Ignored, "other file ignored", "other files ignored"},
	} {
		if p.n > 0 {
			parts = append(parts, count(p.n, p.one, p.many))
		}
	}
	return strings.Join(parts, ", ") + "."
}
