package db

import (
	"context"
	"encoding/hex"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"winnow"
)

// exportChunk is how many rows an export holds at a time.
const exportChunk = 2000

// ExportLabels calls fn for the images that the filter asks for, in the order of
// their ids, as they stood at one moment. Memory stays flat, and the first call comes
// at once. An error of fn ends it and is returned.
func (s *Store) ExportLabels(ctx context.Context, project winnow.ProjectID, f winnow.LabelFilter, fn func(winnow.LabelRecord) error) error {
	sql, args, err := exportQuery(project, f)
	if err != nil {
		return err
	}
	// Chunks by key keep the memory flat at both ends; one snapshot keeps them consistent.
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, s.pool, snapshot, func(tx pgx.Tx) error {
		for {
			records, err := collect(ctx, tx, scanRecord, sql, args)
			if err != nil {
				return err
			}
			for _, r := range records {
				if err := fn(r); err != nil {
					return err
				}
			}
			if len(records) < exportChunk {
				return nil
			}
			args["after"] = records[len(records)-1].ImageID
		}
	})
	return wrap(err, "export labels of project %d", project)
}

func exportQuery(project winnow.ProjectID, f winnow.LabelFilter) (string, pgx.NamedArgs, error) {
	split := f.Split
	if split == "" {
		split = winnow.SplitPool
	}
	if err := validImageFilter(winnow.ImageFilter{Split: split}); err != nil {
		return "", nil, err
	}
	for _, status := range f.Statuses {
		if status == "" || validVerdictFilter(status) != nil {
			return "", nil, winnow.Invalid("status", "A status is known, unknown, skip, unreadable or unlabeled.")
		}
	}
	args := pgx.NamedArgs{
		"project": project, "split": split, "after": winnow.ImageID(0), "limit": exportChunk,
		"round": f.Round, "statuses": f.Statuses,
	}
	// The item is the one whose decision stands, or, of a round's images, the round's.
	from := `images i
		LEFT JOIN label_events e ON e.id = i.label_event_id
		LEFT JOIN query_items q ON q.id = e.item_id
		LEFT JOIN rounds r ON r.id = q.round_id`
	if f.Round != nil {
		from = `rounds r
		JOIN query_items q ON q.round_id = r.id
		JOIN images i ON i.id = q.image_id
		LEFT JOIN label_events e ON e.id = i.label_event_id`
	}
	where := ""
	if f.Round != nil {
		where += " AND r.project_id = @project AND r.number = @round AND q.slice <> 'gold'"
	}
	switch unlabeled := slices.Contains(f.Statuses, winnow.Unlabeled); {
	case len(f.Statuses) == 0:
		where += " AND i.verdict IS NOT NULL"
	case unlabeled && len(f.Statuses) == 1:
		where += " AND i.verdict IS NULL"
	case unlabeled:
		where += " AND (i.verdict IS NULL OR i.verdict = ANY(@statuses::text[]))"
	default:
		where += " AND i.verdict = ANY(@statuses::text[])"
	}
	return `
		SELECT i.id, i.sha256, i.source_path, i.split, coalesce(i.verdict, 'unlabeled'), c.name, i.class,
		       e.class_version, e.kind, r.number, q.slice, q.rank, u.email, e.at, e.duration_ms, i.width, i.height
		FROM ` + from + `
		LEFT JOIN classes c ON c.project_id = i.project_id AND c.position = i.class
		LEFT JOIN users u ON u.id = e.user_id
		WHERE i.project_id = @project AND i.split = @split AND i.id > @after` + where + `
		ORDER BY i.id
		LIMIT @limit`, args, nil
}

func scanRecord(row pgx.CollectableRow) (winnow.LabelRecord, error) {
	var (
		r       winnow.LabelRecord
		sha     []byte
		version zeronull.Int8
		rank    zeronull.Int8
	)
	err := row.Scan(&r.ImageID, &sha, &r.SourcePath, &r.Split, &r.Status, (*zeronull.Text)(&r.Class), &r.ClassIndex,
		&version, (*zeronull.Text)(&r.Origin), &r.Round, (*zeronull.Text)(&r.Slice), &rank,
		(*zeronull.Text)(&r.Annotator), &r.LabeledAt, (*zeronull.Int8)(&r.DurationMS), &r.Width, &r.Height)
	r.SHA256 = hex.EncodeToString(sha)
	r.ClassVersion, r.Rank = int(version), int(rank)
	return r, err
}
