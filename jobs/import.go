package jobs

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"winnow"
	"winnow/imaging"
)

const (
	// A batch goes to the store when it has this many images or bytes.
	batchImages = 256
	batchBytes  = 32 << 20

	// importBytes bounds the bytes of all files that an import holds: a full batch,
	// one file of the largest size, and the files being prepared beside them.
	importBytes = 192 << 20

	// unknownSize is what a file of unknown size counts.
	unknownSize = 64 << 10

	// progressEvery is how often a running import reports.
	progressEvery = 500 * time.Millisecond

	// aliveEvery is how often an import shows that it lives while it has nothing new to
	// report: a slow disk, or a store that is busy.
	aliveEvery = 5 * time.Second

	// finishTimeout is how long the last report of a cancelled import may take.
	finishTimeout = 10 * time.Second
)

// ImportStore is what an Importer needs of the store.
type ImportStore interface {
	CreateImport(ctx context.Context, by winnow.UserID, imp winnow.Import) (winnow.ImportID, error)
	UpdateImport(ctx context.Context, imp *winnow.Import) error
	FinishImport(ctx context.Context, imp *winnow.Import) error
	AddImages(ctx context.Context, project winnow.ProjectID, imp winnow.ImportID, by winnow.UserID, images []winnow.NewImage) ([]bool, error)
}

// Importer brings images from a folder or an archive into a project. Files are
// prepared on all cores and stored in the order of the source; the memory it takes
// does not grow with their number. It may run several imports at once.
type Importer struct {
	store    ImportStore
	limits   imaging.Limits
	preparer *imaging.Preparer
}

// NewImporter returns an Importer that takes files within the limits.
func NewImporter(store ImportStore, limits imaging.Limits) *Importer {
	return &Importer{store: store, limits: limits, preparer: imaging.NewPreparer(limits)}
}

// ImportRequest says what to import, where to, and as what.
type ImportRequest struct {
	Project *winnow.Project
	By      winnow.UserID // 0 for the command line
	Source  imaging.Source
	Prefix  string // only what lies in this folder of the source, such as "train"
	Split   winnow.Split
	// Labeled takes each file's folder as its label: the known class of that name,
	// ignoring case, or else the unknown class. Files in no folder have no label.
	Labeled bool
	// Progress, if set, is called now and then with the figures so far.
	Progress func(winnow.Import)
}

// Import begins an import and runs it.
func (im *Importer) Import(ctx context.Context, req ImportRequest) (winnow.Import, error) {
	imp, err := im.Begin(ctx, req)
	if err != nil {
		return winnow.Import{}, err
	}
	return im.Run(ctx, req, *imp)
}

// Begin records that an import starts. Run must follow.
func (im *Importer) Begin(ctx context.Context, req ImportRequest) (*winnow.Import, error) {
	if req.Split != winnow.SplitPool && req.Split != winnow.SplitTest {
		return nil, winnow.Invalid("split", "%q is neither pool nor test.", req.Split)
	}
	imp := winnow.Import{
		ProjectID: req.Project.ID,
		Source:    req.Source.Name(),
		Split:     req.Split,
		Labeled:   req.Labeled,
		State:     winnow.ImportRunning,
	}
	id, err := im.store.CreateImport(ctx, req.By, imp)
	if err != nil {
		return nil, err
	}
	imp.ID = id
	return &imp, nil
}

// Run runs an import that Begin recorded. A file that cannot be taken is a problem
// of the report, not an error; images that the project has already are counted as
// duplicates. When ctx ends, what went in stays, and the same import can be run
// again. The report is good in every case, and the store has it too.
func (im *Importer) Run(ctx context.Context, req ImportRequest, imp winnow.Import) (winnow.Import, error) {
	r := &importRun{Importer: im, req: req, report: imp, published: imp}
	stopAlive := r.keepAlive(ctx)
	err := r.run(ctx)
	stopAlive()
	switch {
	case err == nil:
		r.report.State = winnow.ImportDone
	case ctx.Err() != nil:
		r.report.State = winnow.ImportInterrupted
		err = &winnow.Error{Code: winnow.CodeCanceled, Message: "The import was stopped. What went in is kept; run it again to continue."}
	default:
		r.report.State = winnow.ImportFailed
	}
	finish, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	if ferr := im.store.FinishImport(finish, &r.report); ferr != nil {
		err = errors.Join(err, ferr)
	}
	if req.Progress != nil {
		req.Progress(r.report)
	}
	return r.report, err
}

// importRun is the state of one import. Only the goroutine of run touches it, but for
// what was published last.
type importRun struct {
	*Importer
	req    ImportRequest
	report winnow.Import
	batch  []winnow.NewImage
	bytes  int64 // of the batch
	weight int64 // of the batch, to give back

	mu        sync.Mutex // held while something is published
	published winnow.Import
	at        time.Time
}

// preparing is a file on its way through the workers.
type preparing struct {
	file   imaging.File
	weight int64
	done   chan struct{} // closed when image or err is there
	image  *winnow.NewImage
	err    error
}

func (r *importRun) run(ctx context.Context) error {
	if err := r.count(ctx); err != nil {
		return err
	}
	// Three stages: one goroutine walks the source, the workers prepare its files,
	// and this goroutine stores them in the order of the walk. The walk waits while
	// the files under way hold more than importBytes. It takes their share in the
	// order in which they are stored, so that the file which is waited for always
	// has its share already.
	var (
		workers = runtime.GOMAXPROCS(0)
		memory  = semaphore.NewWeighted(importBytes)
		work    = make(chan *preparing)
		queue   = make(chan *preparing, 2*batchImages)
	)
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(queue)
		defer close(work)
		_, err := r.req.Source.Walk(gctx, r.req.Prefix, func(f imaging.File) error {
			p := &preparing{file: f, weight: r.weigh(f), done: make(chan struct{})}
			if err := memory.Acquire(gctx, p.weight); err != nil {
				return err
			}
			for _, to := range []chan<- *preparing{work, queue} {
				select {
				case to <- p:
				case <-gctx.Done():
					return gctx.Err()
				}
			}
			return nil
		})
		return err
	})
	for range workers {
		group.Go(func() error {
			for p := range work {
				p.image, p.err = r.prepare(gctx, p.file)
				close(p.done)
			}
			return nil
		})
	}
	group.Go(func() error { return r.collect(gctx, queue, memory) })
	return group.Wait()
}

// count finds how many files there are to do.
func (r *importRun) count(ctx context.Context) error {
	ignored, err := r.req.Source.Walk(ctx, r.req.Prefix, func(imaging.File) error {
		if r.report.Total++; r.report.Total > winnow.MaxImagesPerImport {
			return winnow.Errorf(winnow.CodeTooLarge, "There are more than %d images; import them in parts.", winnow.MaxImagesPerImport)
		}
		return nil
	})
	r.report.Ignored = ignored
	switch {
	case err != nil:
		return err
	case r.report.Total == 0 && r.req.Prefix != "":
		return winnow.Errorf(winnow.CodeInvalid, "There are no images under %q in %s.", r.req.Prefix, r.req.Source.Name())
	case r.report.Total == 0:
		return winnow.Errorf(winnow.CodeInvalid, "There are no images in %s. PNG, JPEG, GIF, WebP, BMP and TIFF files are read.", r.req.Source.Name())
	}
	return r.publish(ctx)
}

// weigh is what a file counts against importBytes.
func (r *importRun) weigh(f imaging.File) int64 {
	side := int64(r.req.Project.Settings.InputSize)
	weight := 3*side*side + 8<<10 // pixels, thumbnail
	switch {
	case f.Bad != nil || f.Size > r.limits.MaxBytes: // it will not be read
	case f.Size < 0:
		weight += unknownSize
	default:
		weight += f.Size
	}
	return min(weight, importBytes-batchBytes)
}

func (r *importRun) prepare(ctx context.Context, f imaging.File) (*winnow.NewImage, error) {
	data, err := f.Read(r.limits.MaxBytes)
	if err != nil {
		return nil, err
	}
	image, err := r.preparer.Prepare(ctx, data, r.req.Project.Settings.InputSize)
	if err != nil {
		return nil, err
	}
	image.ProjectID = r.req.Project.ID
	image.SourcePath = f.Path
	image.Split = r.req.Split
	if r.req.Labeled {
		image.Verdict, image.Class = labelOf(r.req.Project, f.Class())
	}
	return image, nil
}

// labelOf turns the name of a class folder into a label.
func labelOf(p *winnow.Project, folder string) (winnow.Verdict, int) {
	if folder == "" {
		return "", -1
	}
	if c, ok := p.ClassByName(folder); ok {
		return winnow.VerdictKnown, c.Index
	}
	return winnow.VerdictUnknown, -1
}

// collect stores what the workers prepared, in order, and reports progress.
func (r *importRun) collect(ctx context.Context, queue <-chan *preparing, memory *semaphore.Weighted) error {
	ticks := time.NewTicker(progressEvery)
	defer ticks.Stop()
	for p := range queue {
		for waiting := true; waiting; {
			select {
			case <-p.done:
				waiting = false
			case <-ticks.C:
				if err := r.publish(ctx); err != nil {
					return err
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if p.err != nil {
			r.problem(p.file.Path, p.err)
			memory.Release(p.weight)
			continue
		}
		r.batch = append(r.batch, *p.image)
		r.bytes += int64(len(p.image.Original) + len(p.image.Display) + len(p.image.Thumbnail) + len(p.image.Pixels))
		r.weight += p.weight
		if len(r.batch) >= batchImages || max(r.bytes, r.weight) >= batchBytes {
			if err := r.flush(ctx, memory); err != nil {
				return err
			}
		}
	}
	return r.flush(ctx, memory)
}

// flush stores the batch.
func (r *importRun) flush(ctx context.Context, memory *semaphore.Weighted) error {
	if len(r.batch) == 0 {
		return nil
	}
	added, err := r.store.AddImages(ctx, r.report.ProjectID, r.report.ID, r.req.By, r.batch)
	if err != nil {
		return fmt.Errorf("store images: %w", err)
	}
	for _, isNew := range added {
		if isNew {
			r.report.Added++
		} else {
			r.report.Duplicates++
		}
	}
	r.report.Done += int64(len(r.batch))
	memory.Release(r.weight)
	clear(r.batch)
	r.batch, r.bytes, r.weight = r.batch[:0], 0, 0
	return nil
}

func (r *importRun) problem(path string, err error) {
	r.report.Done++
	r.report.Failed++
	if len(r.report.Problems) < winnow.MaxImportProblems {
		r.report.Problems = append(r.report.Problems, winnow.ImportProblem{Path: path, Reason: winnow.ErrorMessage(err)})
	}
}

// publish stores the figures so far, which also tells that the import lives.
func (r *importRun) publish(ctx context.Context) error {
	r.mu.Lock()
	r.published, r.at = r.report, time.Now()
	err := r.store.UpdateImport(ctx, &r.published)
	r.mu.Unlock()
	if err != nil {
		return err
	}
	if r.req.Progress != nil {
		r.req.Progress(r.report)
	}
	return nil
}

// keepAlive publishes again what was published last whenever that is aliveEvery ago,
// until it is stopped. Its errors come again with the next figures.
func (r *importRun) keepAlive(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(aliveEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			r.mu.Lock()
			if time.Since(r.at) >= aliveEvery {
				_ = r.store.UpdateImport(ctx, &r.published)
			}
			r.mu.Unlock()
		}
	}()
	return func() { cancel(); <-stopped }
}
