package demo

import (
	"context"

	"winnow"
	"winnow/imaging"
	"winnow/jobs"
)

// ProjectName is the name of the demo project.
const ProjectName = "Demo"

const (
	imageSeed = 1
	// labeledPerClass is how many images of each known class are labeled at the
	// start, so that the first round has something to train on.
	labeledPerClass = 10
)

const instructions = `Say what is in the picture, by the button or by its key.

Fish, boat, mushroom and house are what we are looking for. Whatever else is in the picture is an unknown class: press U. That goes for a tree and a car as well as for something you can hardly name.

The picture counts, not its surroundings: a house under water is a house. Drawings vary in style, so go by what the thing is meant to be.

Skip what you cannot decide, and call unreadable only what shows nothing at all. Backspace takes back your last answer.`

// Settings are the demo project's: a small query and a short training, so that a
// round takes a minute or two on two cores and a newcomer sees several.
func Settings() winnow.Settings {
	s := winnow.DefaultSettings()
	s.Budget, s.Neighbours, s.AutoNext = 40, 50, true
	s.Width, s.Epochs, s.Batch = 8, 40, 16
	s.LRStep = 20
	return s
}

// NewProject returns the demo project as it is before it is stored.
func NewProject() (*winnow.Project, error) {
	classes, err := winnow.NewClasses(Classes()[:Known])
	if err != nil {
		return nil, err
	}
	return &winnow.Project{Name: ProjectName, Instructions: instructions, Classes: classes, Settings: Settings()}, nil
}

// Store is what Seed needs of the store.
type Store interface {
	jobs.ImportStore
	FindProject(ctx context.Context, nameOrID string) (*winnow.Project, error)
	CreateProject(ctx context.Context, by winnow.UserID, p *winnow.Project) (winnow.ProjectID, error)
	Rounds(ctx context.Context, project winnow.ProjectID, page winnow.Page) ([]*winnow.Round, string, error)
	StartRound(ctx context.Context, by winnow.UserID, project winnow.ProjectID) (*winnow.Round, error)
}

// Seed makes the demo project with its images and first labels, and starts its first
// round. Whatever of this is there already stays as it is, so that a seeding that
// was stopped is completed by the next one. Progress, if set, is called with the
// figures of each import.
func Seed(ctx context.Context, store Store, by winnow.UserID, progress func(winnow.Import)) (*winnow.Project, error) {
	p, err := project(ctx, store, by)
	if err != nil {
		return nil, err
	}
	set := NewSet(imageSeed)
	importer := jobs.NewImporter(store, imaging.DefaultLimits())
	// The labeled images go first: they are part of the pool, and an image that is
	// imported again keeps its label.
	for _, step := range []struct {
		done bool
		req  jobs.ImportRequest
	}{
		{p.Counts.Known >= Known*labeledPerClass, jobs.ImportRequest{Source: set.First(labeledPerClass), Split: winnow.SplitPool, Labeled: true}},
		{p.Counts.Pool >= poolImages, jobs.ImportRequest{Source: set, Prefix: "pool", Split: winnow.SplitPool}},
		{p.Counts.Test >= testImages, jobs.ImportRequest{Source: set, Prefix: "test", Split: winnow.SplitTest, Labeled: true}},
	} {
		if step.done {
			continue
		}
		step.req.Project, step.req.By, step.req.Progress = p, by, progress
		if _, err := importer.Import(ctx, step.req); err != nil {
			return nil, err
		}
	}
	rounds, _, err := store.Rounds(ctx, p.ID, winnow.Page{Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(rounds) == 0 {
		if _, err := store.StartRound(ctx, by, p.ID); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// project finds the demo project, or makes it.
func project(ctx context.Context, store Store, by winnow.UserID) (*winnow.Project, error) {
	p, err := store.FindProject(ctx, ProjectName)
	if winnow.ErrorCode(err) != winnow.CodeNotFound {
		return p, err
	}
	if p, err = NewProject(); err != nil {
		return nil, err
	}
	if _, err := store.CreateProject(ctx, by, p); err != nil {
		return nil, err
	}
	return store.FindProject(ctx, ProjectName)
}
