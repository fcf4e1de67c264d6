package db

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"winnow"
)

const roundColumns = `r.id, r.project_id, r.number, r.state, r.strategy, r.cold_start, r.seed, r.k, r.settings,
	r.class_version, r.classes, r.label_version, r.image_version, r.attempt, r.progress, r.metrics, r.error, r.backend,
	r.created_at, r.started_at, r.labeling_at, r.closed_at,
	r.item_count, r.known_count, r.unknown_count, r.skipped_count, r.unreadable_count,
	r.audit_count, r.audit_known_count, r.audit_unknown_count, r.gold_count`

func scanRound(row pgx.CollectableRow) (*winnow.Round, error) {
	r := new(winnow.Round)
	n := &r.Counts
	return r, row.Scan(&r.ID, &r.ProjectID, &r.Number, &r.State, &r.Strategy, &r.ColdStart, &r.Seed, &r.K,
		(*settingsJSON)(&r.Settings), &r.ClassVersion, &r.Classes, &r.LabelVersion, &r.ImageVersion, &r.Attempt, &r.Progress, &r.Metrics,
		&r.Error, &r.Backend, &r.CreatedAt, (*zeronull.Timestamptz)(&r.StartedAt),
		(*zeronull.Timestamptz)(&r.LabelingAt), (*zeronull.Timestamptz)(&r.ClosedAt),
		&n.Total, &n.Known, &n.Unknown, &n.Skipped, &n.Unreadable, &n.AuditTotal, &n.AuditKnown, &n.AuditUnknown,
		&n.Gold)
}

// Round returns the round of that number.
func (s *Store) Round(ctx context.Context, project winnow.ProjectID, number int) (*winnow.Round, error) {
	r, err := one(ctx, s.pool, scanRound, `
		SELECT `+roundColumns+` FROM rounds r WHERE r.project_id = @project AND r.number = @number`,
		pgx.NamedArgs{"project": project, "number": number})
	return r, wrap(missing(err, "There is no round %d in this project.", number), "read round")
}

// RoundByID returns a round.
func (s *Store) RoundByID(ctx context.Context, id winnow.RoundID) (*winnow.Round, error) {
	return s.roundByID(ctx, s.pool, id)
}

func (s *Store) roundByID(ctx context.Context, q querier, id winnow.RoundID) (*winnow.Round, error) {
	r, err := one(ctx, q, scanRound, `SELECT `+roundColumns+` FROM rounds r WHERE r.id = @id`, pgx.NamedArgs{"id": id})
	return r, wrap(missing(err, "There is no such round."), "read round %d", id)
}

// latestRound returns the project's newest round, nil before the first.
func latestRound(ctx context.Context, q querier, project winnow.ProjectID) (*winnow.Round, error) {
	r, err := one(ctx, q, scanRound, `
		SELECT `+roundColumns+` FROM rounds r WHERE r.project_id = @project ORDER BY r.number DESC LIMIT 1`,
		pgx.NamedArgs{"project": project})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return r, err
}

// Rounds lists the rounds of a project, newest first.
func (s *Store) Rounds(ctx context.Context, project winnow.ProjectID, page winnow.Page) ([]*winnow.Round, string, error) {
	w, err := newWindow(page, lastNumber)
	if err != nil {
		return nil, "", err
	}
	rounds, err := collect(ctx, s.pool, scanRound, `
		SELECT `+roundColumns+` FROM rounds r
		WHERE r.project_id = @project AND r.number < @after
		ORDER BY r.number DESC
		LIMIT @limit`,
		pgx.NamedArgs{"project": project, "after": w.after, "limit": w.limit + 1})
	if err != nil {
		return nil, "", wrap(err, "list rounds of project %d", project)
	}
	rounds, next := cut(w, rounds, func(r *winnow.Round) int64 { return int64(r.Number) })
	return rounds, next, nil
}

// RoundHistory returns the figures of a project's newest n rounds, oldest first.
func (s *Store) RoundHistory(ctx context.Context, project winnow.ProjectID, n int) ([]winnow.RoundFigures, error) {
	history, err := collect(ctx, s.pool, func(row pgx.CollectableRow) (f winnow.RoundFigures, err error) {
		c := &f.Counts
		err = row.Scan(&f.Number, &f.TestAccuracy, &f.TestImages, &c.Total, &c.Known, &c.Unknown, &c.Skipped, &c.Unreadable,
			&c.AuditTotal, &c.AuditKnown, &c.AuditUnknown)
		return f, err
	}, `
		SELECT number, (metrics ->> 'test_accuracy')::float8, coalesce((metrics ->> 'test_images')::int, 0),
		       item_count, known_count, unknown_count, skipped_count, unreadable_count,
		       audit_count, audit_known_count, audit_unknown_count
		FROM rounds
		WHERE project_id = @project
		ORDER BY number DESC
		LIMIT @limit`,
		pgx.NamedArgs{"project": project, "limit": min(max(n, 0), maxPage)})
	slices.Reverse(history)
	return history, wrap(err, "read history of project %d", project)
}

// StartRound queues the project's next round and its job. CodeConflict if a round is
// open, CodeInvalid if no image of the pool is left to ask about.
func (s *Store) StartRound(ctx context.Context, by winnow.UserID, project winnow.ProjectID) (*winnow.Round, error) {
	var round *winnow.Round
	err := s.tx(ctx, func(tx pgx.Tx) error {
		latest, err := latestRound(ctx, tx, project)
		if err != nil {
			return err
		}
		if latest != nil && latest.State.Open() {
			return errOpenRound(latest.Number)
		}
		p, err := one(ctx, tx, scanProject, `SELECT `+projectColumns+` FROM projects p WHERE p.id = @id`, pgx.NamedArgs{"id": project})
		if err != nil {
			return missing(err, "There is no such project.")
		}
		if p.Counts.Unlabeled() == 0 {
			return winnow.Errorf(winnow.CodeInvalid, "No image of the pool is left to ask about. Import images first.")
		}
		round, err = s.insertRound(ctx, tx, by, p)
		return err
	})
	return round, wrap(err, "start round of project %d", project)
}

func errOpenRound(number int) error {
	return winnow.Errorf(winnow.CodeConflict, "Round %d is still open. Finish, close or cancel it first.", number)
}

// insertRound queues the next round of a project that has none open.
func (s *Store) insertRound(ctx context.Context, tx pgx.Tx, by winnow.UserID, p *winnow.Project) (*winnow.Round, error) {
	// k goes on from the last round that closed. Each round has a seed of its own, so
	// that two random queries of one project differ.
	round, err := one(ctx, tx, scanRound, `
		INSERT INTO rounds AS r (project_id, number, state, strategy, seed, k, settings, class_version, classes, created_by, created_at)
		SELECT @project, number, 'queued', @strategy, @seed::bigint + number,
		       coalesce((SELECT (metrics ->> 'next_k')::double precision FROM rounds
		                 WHERE project_id = @project AND state = 'closed' ORDER BY number DESC LIMIT 1), @k),
		       @settings, @class_version, @classes, nullif(@by::bigint, 0), @now
		FROM (SELECT coalesce(max(number) + 1, 0) AS number FROM rounds WHERE project_id = @project) AS next
		RETURNING `+roundColumns,
		pgx.NamedArgs{
			"project": p.ID, "strategy": p.Settings.Strategy, "seed": p.Settings.Seed, "k": p.Settings.K,
			"settings": p.Settings, "class_version": p.ClassVersion, "classes": len(p.Classes), "by": by, "now": s.now(),
		})
	if violates(err, "rounds_one_open") || violates(err, "rounds_number") {
		return nil, winnow.Errorf(winnow.CodeConflict, "Somebody else has just started a round.")
	}
	if err != nil {
		return nil, err
	}
	if err := s.opts.Enqueue(ctx, tx, round.ID, round.Attempt); err != nil {
		return nil, err
	}
	// What failed or cancelled rounds had scored served their retry, which is over now.
	if err := dropChunks(ctx, tx, p.ID); err != nil {
		return nil, err
	}
	if err := notify(ctx, tx, winnow.Notice{Project: p.ID, Round: round.ID}); err != nil {
		return nil, err
	}
	return round, s.audit(ctx, tx, by, p.ID, "round.start", detail{"round": round.Number})
}

// lockRound returns a round of a project, locked against every change.
func lockRound(ctx context.Context, tx pgx.Tx, project winnow.ProjectID, number int) (*winnow.Round, error) {
	r, err := one(ctx, tx, scanRound, `
		SELECT `+roundColumns+` FROM rounds r WHERE r.project_id = @project AND r.number = @number FOR NO KEY UPDATE`,
		pgx.NamedArgs{"project": project, "number": number})
	return r, missing(err, "There is no round %d in this project.", number)
}

// CancelRound stops a round that is not being labeled yet; its worker notices at its
// next report. CodeConflict if it is past that.
func (s *Store) CancelRound(ctx context.Context, by winnow.UserID, project winnow.ProjectID, number int) (*winnow.Round, error) {
	return s.changeRound(ctx, by, project, number, "round.cancel", func(tx pgx.Tx, r *winnow.Round) error {
		switch {
		case r.State == winnow.RoundLabeling:
			return winnow.Errorf(winnow.CodeConflict, "Round %d is being labeled. Close it instead: its labels are kept.", number)
		case !r.State.Open():
			return winnow.Errorf(winnow.CodeConflict, "Round %d is %s already.", number, r.State)
		}
		if _, err := tx.Exec(ctx, `UPDATE rounds SET state = 'cancelled', closed_at = @now WHERE id = @id`,
			pgx.NamedArgs{"id": r.ID, "now": s.now()}); err != nil {
			return err
		}
		return endScoring(ctx, tx, r.ID)
	})
}

// RetryRound queues a failed or cancelled round once more, with the settings it had
// and the labels and images that there are now.
// CodeConflict if it is neither, or not the newest.
func (s *Store) RetryRound(ctx context.Context, by winnow.UserID, project winnow.ProjectID, number int) (*winnow.Round, error) {
	return s.changeRound(ctx, by, project, number, "round.retry", func(tx pgx.Tx, r *winnow.Round) error {
		if r.State != winnow.RoundFailed && r.State != winnow.RoundCancelled {
			return winnow.Errorf(winnow.CodeConflict, "Round %d is %s: only a failed or cancelled round can be tried again.", number, r.State)
		}
		latest, err := latestRound(ctx, tx, project)
		if err != nil {
			return err
		}
		if latest.ID != r.ID {
			return winnow.Errorf(winnow.CodeConflict, "Round %d has come since: start a new round instead.", latest.Number)
		}
		attempt, err := value[int](ctx, tx, `
			UPDATE rounds
			SET state = 'queued', attempt = attempt + 1, takeovers = 0, heartbeat_at = NULL, progress = '{}', metrics = '{}',
			    label_version = 0, image_version = 0, error = '', started_at = NULL, closed_at = NULL
			WHERE id = @id
			RETURNING attempt`, pgx.NamedArgs{"id": r.ID})
		if violates(err, "rounds_one_open") {
			return winnow.Errorf(winnow.CodeConflict, "Another round is open.")
		}
		if err != nil {
			return err
		}
		return s.opts.Enqueue(ctx, tx, r.ID, attempt)
	})
}

// CloseRound ends the labeling of a round by hand: what is decided counts, the rest
// goes back to the pool. CodeConflict if it is not being labeled.
func (s *Store) CloseRound(ctx context.Context, by winnow.UserID, project winnow.ProjectID, number int) (*winnow.Round, error) {
	return s.changeRound(ctx, by, project, number, "round.close", func(tx pgx.Tx, r *winnow.Round) error {
		if r.State != winnow.RoundLabeling {
			return winnow.Errorf(winnow.CodeConflict, "Round %d is %s: only a round that is being labeled can be closed.", number, r.State)
		}
		return s.close(ctx, tx, by, r)
	})
}

// changeRound runs change on a locked round, records and announces it, and returns
// the round as it is then.
func (s *Store) changeRound(ctx context.Context, by winnow.UserID, project winnow.ProjectID, number int, action string, change func(tx pgx.Tx, r *winnow.Round) error) (*winnow.Round, error) {
	var round *winnow.Round
	err := s.tx(ctx, func(tx pgx.Tx) error {
		r, err := lockRound(ctx, tx, project, number)
		if err != nil {
			return err
		}
		if err := change(tx, r); err != nil {
			return err
		}
		if err := notify(ctx, tx, winnow.Notice{Project: project, Round: r.ID}); err != nil {
			return err
		}
		if err := s.audit(ctx, tx, by, project, action, detail{"round": number}); err != nil {
			return err
		}
		round, err = s.roundByID(ctx, tx, r.ID)
		return err
	})
	return round, wrap(err, "%s %d of project %d", action, number, project)
}

// close ends a locked round that is being labeled: it writes the precision and the
// next k, and starts the next round if the project says so.
func (s *Store) close(ctx context.Context, tx pgx.Tx, by winnow.UserID, r *winnow.Round) error {
	p, err := one(ctx, tx, scanProject, `SELECT `+projectColumns+` FROM projects p WHERE p.id = @id`,
		pgx.NamedArgs{"id": r.ProjectID})
	if err != nil {
		return err
	}
	// Without a single known or unknown there is no precision, and k stays.
	k := r.K
	if precision, ok := r.Counts.Precision(); ok {
		r.Metrics.Precision = &precision
		k = s.opts.NextK(r.Settings, r.K, precision, p.Counts.Unlabeled())
	}
	r.Metrics.NextK = &k
	r.State, r.ClosedAt = winnow.RoundClosed, s.now()
	if _, err := tx.Exec(ctx, `UPDATE rounds SET state = @state, closed_at = @now, metrics = @metrics WHERE id = @id`,
		pgx.NamedArgs{"id": r.ID, "state": r.State, "now": r.ClosedAt, "metrics": r.Metrics}); err != nil {
		return err
	}
	if !p.Settings.AutoNext || p.Counts.Unlabeled() == 0 {
		return nil
	}
	_, err = s.insertRound(ctx, tx, by, p)
	return err
}

// reopen takes back the closing of a locked round, or reports that it is too late.
func (s *Store) reopen(ctx context.Context, tx pgx.Tx, r *winnow.Round) error {
	latest, err := latestRound(ctx, tx, r.ProjectID)
	if err != nil {
		return err
	}
	if r.State != winnow.RoundClosed || latest.ID != r.ID {
		return winnow.Errorf(winnow.CodeConflict, "Round %d has started since, so the labels of round %d stand.", latest.Number, r.Number)
	}
	r.Metrics.Precision, r.Metrics.NextK = nil, nil
	_, err = tx.Exec(ctx, `UPDATE rounds SET state = 'labeling', closed_at = NULL, metrics = @metrics WHERE id = @id`,
		pgx.NamedArgs{"id": r.ID, "metrics": r.Metrics})
	if violates(err, "rounds_one_open") {
		return winnow.Errorf(winnow.CodeConflict, "The next round has started, so the labels of round %d stand.", r.Number)
	}
	return err
}
