package handlers

import (
	"context"

	"winnow"
)

// PeopleStore is what the people page and invitations need of the store.
type PeopleStore interface {
	Members(ctx context.Context, project winnow.ProjectID, page winnow.Page) ([]winnow.Member, string, error)
	SetMemberRole(ctx context.Context, by winnow.UserID, project winnow.ProjectID, user winnow.UserID, role winnow.Role) error
	RemoveMember(ctx context.Context, by winnow.UserID, project winnow.ProjectID, user winnow.UserID) error
	CreateInvite(ctx context.Context, by winnow.UserID, inv winnow.Invite) (string, error)
	Invites(ctx context.Context, project winnow.ProjectID) ([]winnow.Invite, error)
}

// InviteStore is what accepting an invitation needs of the store.
type InviteStore interface {
	Invite(ctx context.Context, token string) (*winnow.Invite, error)
	AcceptInvite(ctx context.Context, token, name, passwordHash string) (winnow.UserID, error)
	JoinByInvite(ctx context.Context, token string, user winnow.UserID) (winnow.ProjectID, error)
}

// TokenStore is what making and revoking API tokens needs of the store.
type TokenStore interface {
	CreateToken(ctx context.Context, t winnow.Token) (string, error)
	Tokens(ctx context.Context, project winnow.ProjectID) ([]winnow.Token, error)
	RevokeToken(ctx context.Context, by winnow.UserID, project winnow.ProjectID, id winnow.TokenID) error
}

// ImageStore is what the gallery, an image's page and image bytes need of the store.
type ImageStore interface {
	Images(ctx context.Context, project winnow.ProjectID, f winnow.ImageFilter, page winnow.Page) ([]winnow.Image, string, error)
	Image(ctx context.Context, project winnow.ProjectID, id winnow.ImageID) (*winnow.Image, error)
	ImageHistory(ctx context.Context, project winnow.ProjectID, id winnow.ImageID) ([]winnow.HistoryEntry, error)
	ImageBytes(ctx context.Context, project winnow.ProjectID, id winnow.ImageID, rendition string) (data []byte, mediaType string, sha [32]byte, err error)
}

// ImportStore is what the import pages need of the store.
type ImportStore interface {
	Import(ctx context.Context, project winnow.ProjectID, id winnow.ImportID) (*winnow.Import, error)
	Imports(ctx context.Context, project winnow.ProjectID, page winnow.Page) ([]winnow.Import, string, error)
}

// Importer brings the images of an uploaded ZIP into a project. Begin records the
// import and returns at once what is to be shown of it and the work that is left,
// which owns the file from then on.
type Importer interface {
	BeginUpload(ctx context.Context, project *winnow.Project, by winnow.UserID, upload Upload) (*winnow.Import, func(ctx context.Context), error)
}

// Upload is a ZIP that somebody sent, waiting in a file.
type Upload struct {
	Name    string // as the sender called it
	Path    string // where it is
	Split   winnow.Split
	Labeled bool // class folders become labels
}

// RoundStore is what the round pages need of the store.
type RoundStore interface {
	StartRound(ctx context.Context, by winnow.UserID, project winnow.ProjectID) (*winnow.Round, error)
	CancelRound(ctx context.Context, by winnow.UserID, project winnow.ProjectID, number int) (*winnow.Round, error)
	RetryRound(ctx context.Context, by winnow.UserID, project winnow.ProjectID, number int) (*winnow.Round, error)
	CloseRound(ctx context.Context, by winnow.UserID, project winnow.ProjectID, number int) (*winnow.Round, error)
	Round(ctx context.Context, project winnow.ProjectID, number int) (*winnow.Round, error)
	Rounds(ctx context.Context, project winnow.ProjectID, page winnow.Page) ([]*winnow.Round, string, error)
	Items(ctx context.Context, round winnow.RoundID, f winnow.ItemFilter, page winnow.Page) ([]winnow.Item, string, error)
}
