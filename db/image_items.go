package db

import (
	"context"

	"github.com/jackc/pgx/v5"

	"winnow"
)

// maxQueried bounds the rounds that are listed for an image.
const maxQueried = 50

// ImageItems lists the rounds that asked about an image, newest first, with the
// scores that made them ask. To mix it in as gold is not to ask about it.
func (s *Store) ImageItems(ctx context.Context, project winnow.ProjectID, id winnow.ImageID) ([]winnow.QueriedItem, error) {
	items, err := collect(ctx, s.pool, scanItem, `
		SELECT `+itemColumns+`
		FROM rounds r
		JOIN query_items q ON q.round_id = r.id AND q.image_id = @image
		JOIN images i ON i.id = q.image_id
		WHERE r.project_id = @project AND q.slice <> 'gold'
		ORDER BY r.number DESC
		LIMIT @limit`,
		pgx.NamedArgs{"project": project, "image": id, "limit": maxQueried})
	if err != nil {
		return nil, wrap(err, "list items of image %d", id)
	}
	queried := make([]winnow.QueriedItem, len(items))
	for i, item := range items {
		round, err := s.RoundByID(ctx, item.RoundID)
		if err != nil {
			return nil, err
		}
		queried[i] = winnow.QueriedItem{Item: item, Round: round.Number}
	}
	return queried, nil
}
