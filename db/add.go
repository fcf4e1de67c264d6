package db

import (
	"bytes"
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"winnow"
)

// AddImages adds a batch of images to a project in one transaction, and reports
// which of them were new. The content hash is the identity: an image that is there
// already stays as it is, except that one which nobody has decided takes the label
// that it comes with. Labels become import events.
//
// A few hundred images a call are a good batch.
func (s *Store) AddImages(ctx context.Context, project winnow.ProjectID, imp winnow.ImportID, by winnow.UserID, images []winnow.NewImage) ([]bool, error) {
	added := make([]bool, len(images))
	if len(images) == 0 {
		return added, nil
	}
	first, labeled := distinct(images)
	err := s.tx(ctx, func(tx pgx.Tx) error {
		if err := lockEvents(ctx, tx, project); err != nil {
			return err
		}
		ids, err := s.insertImages(ctx, tx, project, imp, images, first)
		if err != nil {
			return err
		}
		for sha, i := range first {
			_, added[i] = ids[sha]
		}
		if err := copyFiles(ctx, tx, images, added, ids); err != nil {
			return err
		}
		// The project's row comes after the images': who labels one of them locks them in
		// that order.
		labels, err := s.importLabels(ctx, tx, project, by, images, labeled)
		if err != nil {
			return err
		}
		return countImages(ctx, tx, project, images, added, labels)
	})
	if err != nil {
		return nil, wrap(err, "add %d images to project %d", len(images), project)
	}
	return added, nil
}

// distinct finds the first image of each content, and the first that says what it is.
func distinct(images []winnow.NewImage) (first, labeled map[[32]byte]int) {
	first = make(map[[32]byte]int, len(images))
	labeled = make(map[[32]byte]int)
	for i := range images {
		sha := images[i].SHA256
		if _, ok := first[sha]; !ok {
			first[sha] = i
		}
		if _, ok := labeled[sha]; !ok && images[i].Verdict != "" {
			labeled[sha] = i
		}
	}
	return first, labeled
}

// insertImages adds the rows of the images whose content is new, and returns the ids
// of these.
func (s *Store) insertImages(ctx context.Context, tx pgx.Tx, project winnow.ProjectID, imp winnow.ImportID, images []winnow.NewImage, first map[[32]byte]int) (map[[32]byte]winnow.ImageID, error) {
	n := len(first)
	var (
		shas       = make([][]byte, 0, n)
		mediaTypes = make([]string, 0, n)
		widths     = make([]int, 0, n)
		heights    = make([]int, 0, n)
		sizes      = make([]int64, 0, n)
		paths      = make([]string, 0, n)
		metadata   = make([]zeronull.Text, 0, n)
		splits     = make([]winnow.Split, 0, n)
	)
	for i := range images {
		image := &images[i]
		if first[image.SHA256] != i {
			continue
		}
		shas = append(shas, image.SHA256[:])
		mediaTypes = append(mediaTypes, image.MediaType)
		widths = append(widths, image.Width)
		heights = append(heights, image.Height)
		sizes = append(sizes, image.Bytes)
		paths = append(paths, image.SourcePath)
		metadata = append(metadata, zeronull.Text(image.Metadata))
		splits = append(splits, image.Split)
	}
	type row struct {
		ID  winnow.ImageID
		SHA []byte
	}
	// In the order of the hashes, so that two imports of the same files wait for each
	// other instead of deadlocking.
	rows, err := collect(ctx, tx, pgx.RowToStructByPos[row], `
		INSERT INTO images (project_id, sha256, media_type, width, height, bytes, source_path, metadata, split, import_id, created_at)
		SELECT @project, n.sha256, n.media_type, n.width, n.height, n.bytes, n.path, n.metadata::jsonb, n.split,
		       nullif(@import::bigint, 0), @now
		FROM unnest(@shas::bytea[], @types::text[], @widths::int[], @heights::int[], @sizes::bigint[],
		            @paths::text[], @metadata::text[], @splits::text[])
		     AS n (sha256, media_type, width, height, bytes, path, metadata, split)
		ORDER BY n.sha256
		ON CONFLICT ON CONSTRAINT images_identity DO NOTHING
		RETURNING id, sha256`,
		pgx.NamedArgs{
			"project": project, "import": imp, "now": s.now(),
			"shas": shas, "types": mediaTypes, "widths": widths, "heights": heights, "sizes": sizes,
			"paths": paths, "metadata": metadata, "splits": splits,
		})
	if violates(err, "images_project_id_fkey") {
		return nil, errNoProject()
	}
	if err != nil {
		return nil, err
	}
	ids := make(map[[32]byte]winnow.ImageID, len(rows))
	for _, r := range rows {
		ids[[32]byte(r.SHA)] = r.ID
	}
	return ids, nil
}

// copyFiles stores the bytes and pixels of the added images.
func copyFiles(ctx context.Context, tx pgx.Tx, images []winnow.NewImage, added []bool, ids map[[32]byte]winnow.ImageID) error {
	var files, pixels [][]any
	for i := range images {
		if !added[i] {
			continue
		}
		image := &images[i]
		id := ids[image.SHA256]
		var display, displayType any // null when browsers read the original
		if image.Display != nil {
			display, displayType = image.Display, renditionType(image.Display)
		}
		files = append(files, []any{id, image.Original, display, displayType, image.Thumbnail})
		if image.Pixels != nil {
			pixels = append(pixels, []any{id, image.PixelSize, image.Pixels})
		}
	}
	if _, err := tx.CopyFrom(ctx, pgx.Identifier{"image_files"},
		[]string{"image_id", "original", "display", "display_type", "thumbnail"}, pgx.CopyFromRows(files)); err != nil {
		return err
	}
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"image_pixels"},
		[]string{"image_id", "size", "rgb"}, pgx.CopyFromRows(pixels))
	return err
}

// renditionType tells the two formats apart that renditions are made in.
func renditionType(data []byte) string {
	if bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")) {
		return "image/png"
	}
	return "image/jpeg"
}

// countImages adds the images, and the labels that came with them, to the counts of
// the project.
func countImages(ctx context.Context, tx pgx.Tx, project winnow.ProjectID, images []winnow.NewImage, added []bool, labels counts) error {
	var pool, test int
	for i := range images {
		switch {
		case !added[i]:
		case images[i].Split == winnow.SplitTest:
			test++
		default:
			pool++
		}
	}
	args := labels.ofProject(project)
	args["pool"], args["test"] = pool, test
	_, err := tx.Exec(ctx, `
		UPDATE projects
		SET pool_count = pool_count + @pool, test_count = test_count + @test,
		    known_count = known_count + @known, unknown_count = unknown_count + @unknown,
		    skipped_count = skipped_count + @skipped, unreadable_count = unreadable_count + @unreadable
		WHERE id = @project`, args)
	return err
}

// importLabels gives their labels to those of the images that have none, and returns
// how many labels the pool has gained.
func (s *Store) importLabels(ctx context.Context, tx pgx.Tx, project winnow.ProjectID, by winnow.UserID, images []winnow.NewImage, labeled map[[32]byte]int) (gained counts, err error) {
	if len(labeled) == 0 {
		return gained, nil
	}
	var (
		shas     = make([][]byte, 0, len(labeled))
		verdicts = make([]winnow.Verdict, 0, len(labeled))
		classes  = make([]*int, 0, len(labeled))
	)
	for sha, i := range labeled {
		shas = append(shas, sha[:])
		verdicts = append(verdicts, images[i].Verdict)
		if images[i].Verdict == winnow.VerdictKnown {
			classes = append(classes, &images[i].Class)
		} else {
			classes = append(classes, nil)
		}
	}
	gained, err = one(ctx, tx, scanCounts, `
		WITH target AS (
			SELECT i.id, n.verdict, n.class
			FROM unnest(@shas::bytea[], @verdicts::text[], @classes::int[]) AS n (sha256, verdict, class)
			JOIN images i ON i.project_id = @project AND i.sha256 = n.sha256
			WHERE i.verdict IS NULL
			ORDER BY i.sha256
			FOR UPDATE OF i
		), event AS (
			INSERT INTO label_events (id, project_id, image_id, user_id, kind, verdict, class, stands, class_version, at)
			OVERRIDING SYSTEM VALUE
			SELECT t.event_id, p.id, t.id, nullif(@by::bigint, 0), 'import', t.verdict, t.class, t.event_id, p.class_version, @now
			FROM (SELECT *, nextval('label_events_id_seq') AS event_id FROM target) t, projects p
			WHERE p.id = @project
			RETURNING id, image_id, verdict, class
		), image AS (
			UPDATE images i SET verdict = e.verdict, class = e.class, label_event_id = e.id
			FROM event e
			WHERE i.id = e.image_id
			RETURNING i.split, i.verdict
		)
		SELECT count(*) FILTER (WHERE verdict = 'known'), count(*) FILTER (WHERE verdict = 'unknown'),
		       count(*) FILTER (WHERE verdict = 'skip'), count(*) FILTER (WHERE verdict = 'unreadable')
		FROM image
		WHERE split = 'pool'`,
		pgx.NamedArgs{"project": project, "by": by, "now": s.now(), "shas": shas, "verdicts": verdicts, "classes": classes})
	if violates(err, "images_class") || violates(err, "label_events_class") {
		return gained, winnow.Invalid("class", "A label names a class that the project does not have.")
	}
	return gained, err
}
