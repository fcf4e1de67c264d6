package db

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"winnow"
)

const imageColumns = `i.id, i.project_id, i.sha256, i.media_type, i.width, i.height, i.bytes, i.source_path,
	i.metadata, i.split, i.verdict, coalesce(i.class, -1), i.created_at`

func scanImage(row pgx.CollectableRow) (winnow.Image, error) {
	var (
		i   winnow.Image
		sha []byte
	)
	err := row.Scan(imageFields(&i, &sha)...)
	copy(i.SHA256[:], sha)
	return i, err
}

func imageFields(i *winnow.Image, sha *[]byte) []any {
	return []any{
		&i.ID, &i.ProjectID, sha, &i.MediaType, &i.Width, &i.Height, &i.Bytes, &i.SourcePath,
		(*[]byte)(&i.Metadata), &i.Split, (*zeronull.Text)(&i.Verdict), &i.Class, &i.CreatedAt,
	}
}

// Image returns an image of a project.
func (s *Store) Image(ctx context.Context, project winnow.ProjectID, id winnow.ImageID) (*winnow.Image, error) {
	i, err := one(ctx, s.pool, scanImage, `
		SELECT `+imageColumns+` FROM images i WHERE i.id = @id AND i.project_id = @project`,
		pgx.NamedArgs{"project": project, "id": id})
	if err != nil {
		return nil, wrap(missing(err, "There is no such image in this project."), "read image %d", id)
	}
	return &i, nil
}

func validImageFilter(f winnow.ImageFilter) error {
	if f.Split != "" && f.Split != winnow.SplitPool && f.Split != winnow.SplitTest {
		return winnow.Invalid("split", "A split is pool or test.")
	}
	return validVerdictFilter(f.Verdict)
}

func validVerdictFilter(v string) error {
	if v != "" && v != winnow.Unlabeled && !slices.Contains(verdicts, winnow.Verdict(v)) {
		return winnow.Invalid("verdict", "A verdict is known, unknown, skip, unreadable or unlabeled.")
	}
	return nil
}

var verdicts = []winnow.Verdict{winnow.VerdictKnown, winnow.VerdictUnknown, winnow.VerdictSkip, winnow.VerdictUnreadable}

// Images lists images in the order of their ids.
func (s *Store) Images(ctx context.Context, project winnow.ProjectID, f winnow.ImageFilter, page winnow.Page) ([]winnow.Image, string, error) {
	if err := validImageFilter(f); err != nil {
		return nil, "", err
	}
	w, err := newWindow(page, 0)
	if err != nil {
		return nil, "", err
	}
	if f.Class != nil && f.Verdict != "" && f.Verdict != string(winnow.VerdictKnown) {
		return nil, "", nil // only what is known has a class: no need to look through all of that
	}
	// Only the conditions asked for are in the statement, so that each combination
	// can walk the index that fits it.
	from, where := "images i", ""
	if f.Round != nil {
		from = `rounds r JOIN query_items q ON q.round_id = r.id JOIN images i ON i.id = q.image_id`
		where += " AND r.project_id = @project AND r.number = @round AND q.slice <> 'gold'"
	}
	if f.Gold {
		from += ` JOIN gold_images g ON g.image_id = i.id`
		where += " AND g.project_id = @project"
	}
	if f.Split != "" {
		where += " AND i.split = @split"
	}
	switch f.Verdict {
	case "":
	case winnow.Unlabeled:
		where += " AND i.verdict IS NULL"
	default:
		where += " AND i.verdict = @verdict"
	}
	if f.Class != nil {
		where += " AND i.class = @class"
	}
	images, err := collect(ctx, s.pool, scanImage, `
		SELECT `+imageColumns+` FROM `+from+`
		WHERE i.project_id = @project AND i.id > @after`+where+`
		ORDER BY i.id
		LIMIT @limit`,
		pgx.NamedArgs{
			"project": project, "after": w.after, "limit": w.limit + 1,
			"split": f.Split, "verdict": f.Verdict, "class": f.Class, "round": f.Round,
		})
	if err != nil {
		return nil, "", wrap(err, "list images of project %d", project)
	}
	images, next := cut(w, images, func(i winnow.Image) int64 { return int64(i.ID) })
	return images, next, nil
}

// maxHistory bounds the history of an image.
const maxHistory = 500

// ImageHistory lists what was ever said of an image, newest first.
func (s *Store) ImageHistory(ctx context.Context, project winnow.ProjectID, id winnow.ImageID) ([]winnow.HistoryEntry, error) {
	entries, err := collect(ctx, s.pool, func(row pgx.CollectableRow) (h winnow.HistoryEntry, err error) {
		err = row.Scan(&h.ID, &h.ProjectID, &h.ImageID, (*zeronull.Int8)(&h.ItemID), (*zeronull.Int8)(&h.RoundID),
			(*zeronull.Int8)(&h.UserID), &h.Kind, (*zeronull.Text)(&h.Verdict), &h.Class,
			(*zeronull.Text)(&h.ClientKey), &h.DurationMS, (*zeronull.Int8)(&h.Supersedes), &h.ClassVersion, &h.At,
			&h.User, &h.Round, &h.Stands, (*zeronull.Text)(&h.Slice))
		return h, err
	}, `
		SELECT e.id, e.project_id, e.image_id, e.item_id, e.round_id, e.user_id, e.kind, e.verdict,
		       coalesce(e.class, -1), e.client_key, e.duration_ms, e.supersedes, e.class_version, e.at,
		       coalesce(nullif(u.name, ''), u.email, ''), coalesce(r.number, -1), i.label_event_id IS NOT DISTINCT FROM e.id, q.slice
		FROM label_events e
		JOIN images i ON i.id = e.image_id
		LEFT JOIN query_items q ON q.id = e.item_id
		LEFT JOIN users u ON u.id = e.user_id
		LEFT JOIN rounds r ON r.id = e.round_id
		WHERE e.project_id = @project AND e.image_id = @id
		ORDER BY e.id DESC
		LIMIT @limit`, pgx.NamedArgs{"project": project, "id": id, "limit": maxHistory})
	return entries, wrap(err, "read history of image %d", id)
}

// Renditions of an image's bytes.
const (
	Original  = "original"
	Display   = "display" // readable by browsers
	Thumbnail = "thumb"
)

// ImageBytes returns a rendition of an image, its media type, and the content hash
// of the original: with the rendition's name, an identity that never changes.
func (s *Store) ImageBytes(ctx context.Context, project winnow.ProjectID, id winnow.ImageID, rendition string) (data []byte, mediaType string, sha [32]byte, err error) {
	columns, ok := map[string]string{
		Original:  `f.original, i.media_type`,
		Display:   `coalesce(f.display, f.original), coalesce(f.display_type, i.media_type)`,
		Thumbnail: `f.thumbnail, 'image/jpeg'`,
	}[rendition]
	if !ok {
		return nil, "", sha, winnow.Errorf(winnow.CodeNotFound, "An image has the renditions original, display and thumb.")
	}
	_, err = one(ctx, s.pool, func(row pgx.CollectableRow) (struct{}, error) {
		var hash []byte
		err := row.Scan(&data, &mediaType, &hash)
		copy(sha[:], hash)
		return struct{}{}, err
	}, `
		SELECT `+columns+`, i.sha256
		FROM images i
		JOIN image_files f ON f.image_id = i.id
		WHERE i.id = @id AND i.project_id = @project`, pgx.NamedArgs{"project": project, "id": id})
	return data, mediaType, sha, wrap(missing(err, "There is no such image in this project."), "read bytes of image %d", id)
}
