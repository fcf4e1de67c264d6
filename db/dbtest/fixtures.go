package dbtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"testing"

	"winnow"
	"winnow/db"
)

// User adds a person who has no password; name@example.org is the address.
func User(t testing.TB, s *db.Store, name string) winnow.User {
	t.Helper()
	u := winnow.User{Email: name + "@example.org", Name: name}
	id, err := s.CreateUser(t.Context(), u, "")
	if err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	u.ID = id
	return u
}

// Member adds a person with a role in a project, by way of an invitation.
func Member(t testing.TB, s *db.Store, by winnow.UserID, project winnow.ProjectID, name string, role winnow.Role) winnow.User {
	t.Helper()
	u := User(t, s, name)
	Join(t, s, by, project, u, role)
	return u
}

// Join gives a person a role in a project, by way of an invitation.
func Join(t testing.TB, s *db.Store, by winnow.UserID, project winnow.ProjectID, u winnow.User, role winnow.Role) {
	t.Helper()
	token, err := s.CreateInvite(t.Context(), by, winnow.Invite{
		ProjectID: project, Email: u.Email, Role: role, ExpiresAt: s.Now().AddDate(0, 0, 7),
	})
	if err == nil {
		_, err = s.JoinByInvite(t.Context(), token, u.ID)
	}
	if err != nil {
		t.Fatalf("dbtest: %v", err)
	}
}

// Settings are the defaults with a small budget and a short training, and without what
// labeling mixes in by chance.
func Settings() winnow.Settings {
	s := winnow.DefaultSettings()
	s.AuditShare, s.GoldEvery = 0, 0
	s.Budget, s.Epochs, s.Width, s.InputSize, s.CropPad = 5, 1, 2, 8, 1
	return s
}

// Project adds a project with the classes c0, c1, ... and n images in its pool that
// nobody has labeled. Their classes show in their colours.
func Project(t testing.TB, s *db.Store, by winnow.UserID, settings winnow.Settings, classes, n int) *winnow.Project {
	t.Helper()
	names := make([]string, classes)
	for i := range names {
		names[i] = fmt.Sprintf("c%d", i)
	}
	list, err := winnow.NewClasses(names)
	if err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	p := &winnow.Project{Name: "Project of " + t.Name() + fmt.Sprint(by), Classes: list, Settings: settings}
	if p.ID, err = s.CreateProject(t.Context(), by, p); err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	AddImages(t, s, p.ID, Images(1, n, settings.InputSize))
	if p, err = s.Project(t.Context(), p.ID); err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	return p
}

// AddImages adds images without an import.
func AddImages(t testing.TB, s *db.Store, project winnow.ProjectID, images []winnow.NewImage) {
	t.Helper()
	if _, err := s.AddImages(t.Context(), project, 0, 0, images); err != nil {
		t.Fatalf("dbtest: %v", err)
	}
}

// Images makes n distinct tiny PNGs of size x size pixels for the pool, unlabeled;
// the same seed makes the same images.
func Images(seed uint64, n, size int) []winnow.NewImage {
	images := make([]winnow.NewImage, n)
	for i := range images {
		images[i] = newImage(rand.New(rand.NewPCG(seed, uint64(i))), size)
		images[i].SourcePath = fmt.Sprintf("images/%d-%d.png", seed, i)
		images[i].Metadata = json.RawMessage(fmt.Sprintf(`{"number": %d}`, i))
	}
	return images
}

// Labeled gives every image the label of a class.
func Labeled(images []winnow.NewImage, class int) []winnow.NewImage {
	for i := range images {
		images[i].Verdict, images[i].Class = winnow.VerdictKnown, class
	}
	return images
}

func newImage(r *rand.Rand, size int) winnow.NewImage {
	picture := image.NewRGBA(image.Rect(0, 0, size, size))
	pixels := make([]byte, 0, size*size*3)
	for y := range size {
		for x := range size {
			c := color.RGBA{byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32()), 255}
			picture.SetRGBA(x, y, c)
			pixels = append(pixels, c.R, c.G, c.B)
		}
	}
	var original, thumbnail bytes.Buffer
	// Neither can fail: the picture is small and the buffers grow.
	_ = png.Encode(&original, picture)
	_ = jpeg.Encode(&thumbnail, picture, nil)
	return winnow.NewImage{
		Image: winnow.Image{
			SHA256: sha256.Sum256(original.Bytes()), MediaType: "image/png", Width: size, Height: size,
			Bytes: int64(original.Len()), Split: winnow.SplitPool, Class: -1,
		},
		Original: original.Bytes(), Thumbnail: thumbnail.Bytes(), Pixels: pixels, PixelSize: size,
	}
}

// OpenRound starts the project's next round and, in the worker's place, opens it with
// a query of the first images of the pool, as many as the budget.
func OpenRound(t testing.TB, s *db.Store, by winnow.UserID, project winnow.ProjectID) *winnow.Round {
	t.Helper()
	round, err := s.StartRound(t.Context(), by, project)
	if err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	return WorkRound(t, s, round)
}

// WorkRound does a queued round's work: it opens it with a query of the first images
// of the pool, as many as the budget.
func WorkRound(t testing.TB, s *db.Store, round *winnow.Round) *winnow.Round {
	t.Helper()
	ctx := t.Context()
	round, err := s.BeginRound(ctx, round.ID, round.Attempt, "test")
	if err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	pool, err := s.PoolSet(ctx, round.ProjectID, round.LabelVersion, round.ImageVersion)
	if err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	items := make([]winnow.Item, min(round.Settings.Budget, len(pool)))
	for i := range items {
		items[i] = winnow.Item{
			ImageID: pool[i], Rank: i + 1, Slice: winnow.SliceQuery,
			Scores: winnow.Scores{HasScores: true, EUL: 0.1, EUD: 0.2, AU: 0.3, Clean: 0.9, Info: 0.5, Predicted: i % round.Classes},
		}
	}
	metrics := winnow.Metrics{PoolSize: len(pool)}
	if err := s.OpenLabeling(ctx, round.ID, round.Attempt, items, metrics, false); err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	if round, err = s.RoundByID(ctx, round.ID); err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	return round
}
