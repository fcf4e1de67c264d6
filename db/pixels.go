package db

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"winnow"
)

// pixelChunk is how many images one query reads: a few megabytes at most.
const pixelChunk = 1024

// Pixels reads images as the networks see them into dst, which holds
// len(ids) x size x size x 3 bytes in the order of ids. It returns the images that
// have no pixels of that size; their places in dst are left as they are.
func (s *Store) Pixels(ctx context.Context, ids []winnow.ImageID, size int, dst []byte) (lacking []winnow.ImageID, err error) {
	stride := size * size * 3
	if len(dst) != len(ids)*stride {
		return nil, fmt.Errorf("db: read pixels: %d bytes for %d images of %d", len(dst), len(ids), stride)
	}
	for len(ids) > 0 {
		n := min(len(ids), pixelChunk)
		some, err := s.readPixels(ctx, ids[:n], size, dst[:n*stride])
		if err != nil {
			return nil, wrap(err, "read pixels")
		}
		lacking = append(lacking, some...)
		ids, dst = ids[n:], dst[n*stride:]
	}
	return lacking, nil
}

func (s *Store) readPixels(ctx context.Context, ids []winnow.ImageID, size int, dst []byte) (lacking []winnow.ImageID, err error) {
	stride := size * size * 3
	place := make(map[winnow.ImageID]int, len(ids))
	for i, id := range ids {
		place[id] = i
	}
	rows, err := s.pool.Query(ctx, `SELECT image_id, rgb FROM image_pixels WHERE image_id = ANY(@ids) AND size = @size`,
		pgx.NamedArgs{"ids": ids, "size": size})
	if err != nil {
		return nil, err
	}
	var (
		id  winnow.ImageID
		rgb pgtype.DriverBytes // not a copy: good until the next row
	)
	_, err = pgx.ForEachRow(rows, []any{&id, &rgb}, func() error {
		i := place[id]
		copy(dst[i*stride:(i+1)*stride], rgb)
		delete(place, id)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if _, ok := place[id]; ok {
			lacking = append(lacking, id)
		}
	}
	return lacking, nil
}

// PutPixels stores an image as the networks see it.
func (s *Store) PutPixels(ctx context.Context, id winnow.ImageID, size int, rgb []byte) error {
	_, err := s.pool.Exec(ctx, `
		INSERT INTO image_pixels (image_id, size, rgb) VALUES (@id, @size, @rgb)
		ON CONFLICT (image_id, size) DO NOTHING`,
		pgx.NamedArgs{"id": id, "size": size, "rgb": rgb})
	return wrap(err, "store pixels of image %d", id)
}

// Original returns an image's bytes as they were imported, whatever its project.
func (s *Store) Original(ctx context.Context, id winnow.ImageID) (data []byte, mediaType string, err error) {
	_, err = one(ctx, s.pool, func(row pgx.CollectableRow) (struct{}, error) {
		return struct{}{}, row.Scan(&data, &mediaType)
	}, `
		SELECT f.original, i.media_type
		FROM images i
		JOIN image_files f ON f.image_id = i.id
		WHERE i.id = @id`, pgx.NamedArgs{"id": id})
	return data, mediaType, wrap(missing(err, "There is no such image."), "read original of image %d", id)
}
