package app

import (
	"context"
	"log/slog"
	"os"

	"winnow"
	"winnow/handlers"
	"winnow/imaging"
	"winnow/jobs"
)

// uploads imports the ZIPs that people upload.
type uploads struct {
	importer *jobs.Importer
	log      *slog.Logger
}

// BeginUpload implements handlers.Importer.
func (u uploads) BeginUpload(ctx context.Context, project *winnow.Project, by winnow.UserID, upload handlers.Upload) (*winnow.Import, func(ctx context.Context), error) {
	file, err := os.Open(upload.Path)
	if err != nil {
		return nil, nil, err
	}
	imp, work, err := u.begin(ctx, project, by, upload, file)
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	return imp, func(ctx context.Context) {
		defer os.Remove(upload.Path)
		defer file.Close()
		work(ctx)
	}, nil
}

func (u uploads) begin(ctx context.Context, project *winnow.Project, by winnow.UserID, upload handlers.Upload, file *os.File) (*winnow.Import, func(ctx context.Context), error) {
	info, err := file.Stat()
	if err != nil {
		return nil, nil, err
	}
	source, err := imaging.OpenZip(upload.Name, file, info.Size(), imaging.DefaultZipLimits())
	if err != nil {
		return nil, nil, err
	}
	req := jobs.ImportRequest{
		Project: project, By: by, Source: source, Prefix: upload.Folder, Split: upload.Split, Labeled: upload.Labeled,
	}
	imp, err := u.importer.Begin(ctx, req)
	if err != nil {
		return nil, nil, err
	}
	return imp, func(ctx context.Context) {
		log := u.log.With("project", project.ID, "import", imp.ID, "source", upload.Name)
		report, err := u.importer.Run(ctx, req, *imp)
		if err != nil {
			log.Error("import ended early", "state", report.State, "error", err)
			return
		}
		log.Info("import done", "added", report.Added, "duplicates", report.Duplicates, "failed", report.Failed)
	}, nil
}
