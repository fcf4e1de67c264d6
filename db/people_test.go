package db_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"winnow"
	"winnow/db/dbtest"
)

func TestUsers(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 0, nil)
	id, err := b.CreateUser(ctx, winnow.User{Email: " Ann@Example.org ", Name: "Ann", SiteAdmin: true}, "hash")
	if err != nil {
		t.Fatal(err)
	}
	want := winnow.User{ID: id, Email: "ann@example.org", Name: "Ann", SiteAdmin: true, CreatedAt: b.clock.Now()}
	got, hash, err := b.UserByEmail(ctx, "ANN@example.org")
	if diff := cmp.Diff(want, got); diff != "" || hash != "hash" || err != nil {
		t.Errorf("hash %q, %v: %s", hash, err, diff)
	}
	_, err = b.CreateUser(ctx, winnow.User{Email: "ann@example.org"}, "")
	wantCode(t, err, winnow.CodeConflict)
	_, err = b.CreateUser(ctx, winnow.User{Email: "no address"}, "")
	wantCode(t, err, winnow.CodeInvalid)
	if err := b.SetPassword(ctx, id, "other"); err != nil {
		t.Fatal(err)
	}
	if _, hash, err = b.UserByEmail(ctx, "ann@example.org"); hash != "other" || err != nil {
		t.Errorf("hash %q, %v after a new password", hash, err)
	}
	before, err := b.User(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.SetPassword(ctx, id, ""); err != nil {
		t.Fatal(err)
	}
	after, hash, err := b.UserByEmail(ctx, "ann@example.org")
	if err != nil || hash != "" || after.SessionEpoch <= before.SessionEpoch {
		t.Errorf("hash %q, sessions of epoch %d, before %d, %v after the password was taken away", hash, after.SessionEpoch, before.SessionEpoch, err)
	}
	wantCode(t, b.SetPassword(ctx, 1e9, "x"), winnow.CodeNotFound)
	_, err = b.User(ctx, 1e9)
	wantCode(t, err, winnow.CodeNotFound)
	_, _, err = b.UserByEmail(ctx, "nobody@example.org")
	wantCode(t, err, winnow.CodeNotFound)
}

func TestSignInLinks(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 0, nil)
	link := func() string {
		t.Helper()
		token, err := b.CreateSignInLink(ctx, b.admin.ID, 15*time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	once, late := link(), link()
	if user, err := b.RedeemSignInLink(ctx, once); user != b.admin.ID || err != nil {
		t.Errorf("signed in %d, %v", user, err)
	}
	_, err := b.RedeemSignInLink(ctx, once)
	wantCode(t, err, winnow.CodeGone)
	b.clock.Advance(15 * time.Minute)
	_, err = b.RedeemSignInLink(ctx, late)
	wantCode(t, err, winnow.CodeGone)
	_, err = b.RedeemSignInLink(ctx, "made up")
	wantCode(t, err, winnow.CodeNotFound)
	_, err = b.CreateSignInLink(ctx, 1e9, time.Minute)
	wantCode(t, err, winnow.CodeNotFound)
}

func TestRoles(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 0, nil)
	viewer := dbtest.Member(t, b.Store, b.admin.ID, b.project, "viewer", winnow.RoleViewer)
	stranger := dbtest.User(t, b.Store, "stranger")
	for name, tc := range map[string]struct {
		user    winnow.User
		project winnow.ProjectID
		role    winnow.Role
		code    winnow.Code
	}{
		"creator":           {b.admin, b.project, winnow.RoleAdmin, ""},
		"member":            {viewer, b.project, winnow.RoleViewer, ""},
		"site admin":        {winnow.User{ID: stranger.ID, SiteAdmin: true}, b.project, winnow.RoleAdmin, ""},
		"stranger":          {stranger, b.project, "", winnow.CodeNotFound},
		"no such project":   {b.admin, 1e9, "", winnow.CodeNotFound},
		"none, site admin":  {winnow.User{SiteAdmin: true}, 1e9, "", winnow.CodeNotFound},
		"nobody is no user": {winnow.User{}, b.project, "", winnow.CodeNotFound},
	} {
		role, err := b.Role(ctx, tc.project, tc.user)
		if role != tc.role || winnow.ErrorCode(err) != tc.code {
			t.Errorf("%s: %q, %v, want %q %s", name, role, err, tc.role, tc.code)
		}
	}
}

func TestTheLastAdminStays(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 0, nil)
	bob := b.annotator("bob")
	wantCode(t, b.SetMemberRole(ctx, b.admin.ID, b.project, b.admin.ID, winnow.RoleViewer), winnow.CodeConflict)
	wantCode(t, b.RemoveMember(ctx, b.admin.ID, b.project, b.admin.ID), winnow.CodeConflict)
	wantCode(t, b.SetMemberRole(ctx, b.admin.ID, b.project, bob, "owner"), winnow.CodeInvalid)
	wantCode(t, b.SetMemberRole(ctx, b.admin.ID, b.project, 1e9, winnow.RoleViewer), winnow.CodeNotFound)
	wantCode(t, b.RemoveMember(ctx, b.admin.ID, b.project, 1e9), winnow.CodeNotFound)
	if err := b.SetMemberRole(ctx, b.admin.ID, b.project, bob, winnow.RoleAdmin); err != nil {
		t.Fatal(err)
	}
	// Two admins who leave at the same moment: one of them stays.
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i, user := range []winnow.UserID{b.admin.ID, bob} {
		wg.Go(func() { errs[i] = b.RemoveMember(ctx, user, b.project, user) })
	}
	wg.Wait()
	if (errs[0] == nil) == (errs[1] == nil) {
		t.Errorf("leaving gave %v and %v, want one conflict", errs[0], errs[1])
	}
	members, next, err := b.Members(ctx, b.project, winnow.Page{})
	if err != nil || len(members) != 1 || next != "" || members[0].Role != winnow.RoleAdmin {
		t.Errorf("members: %+v, %v", members, err)
	}
}

func TestMembersCountTheirLabels(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 8, nil)
	bob := b.annotator("bob")
	b.open()
	for i, item := range b.claim(bob, 3) {
		b.decide(bob, decision(item.ID, winnow.VerdictSkip, -1, string(rune('a'+i))))
	}
	if _, err := b.Undo(ctx, b.project, bob, 0, "u"); err != nil {
		t.Fatal(err)
	}
	members, next, err := b.Members(ctx, b.project, winnow.Page{Limit: 1})
	if err != nil || len(members) != 1 || members[0].ID != b.admin.ID || members[0].Labels != 0 || !members[0].LastAt.IsZero() {
		t.Errorf("first page: %+v, %v", members, err)
	}
	members, _, err = b.Members(ctx, b.project, winnow.Page{Limit: 1, After: next})
	if err != nil || len(members) != 1 || members[0].ID != bob || members[0].Labels != 2 || !members[0].LastAt.Equal(b.clock.Now()) {
		t.Errorf("second page: %+v, %v", members, err)
	}
}

// Who may no longer invite must not have left a way in for themselves.
func TestInvitesEndWithTheRightToInvite(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 0, nil)
	invite := func(by winnow.UserID, email string) string {
		t.Helper()
		token, err := b.CreateInvite(ctx, by, winnow.Invite{ProjectID: b.project, Email: email, Role: winnow.RoleAdmin, ExpiresAt: b.clock.Now().Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	removed := dbtest.Member(t, b.Store, b.admin.ID, b.project, "removed", winnow.RoleAdmin)
	demoted := dbtest.Member(t, b.Store, b.admin.ID, b.project, "demoted", winnow.RoleAdmin)
	byRemoved, byDemoted, byAdmin := invite(removed.ID, "a@example.org"), invite(demoted.ID, "b@example.org"), invite(b.admin.ID, "c@example.org")
	if err := b.RemoveMember(ctx, b.admin.ID, b.project, removed.ID); err != nil {
		t.Fatal(err)
	}
	if err := b.SetMemberRole(ctx, b.admin.ID, b.project, demoted.ID, winnow.RoleAnnotator); err != nil {
		t.Fatal(err)
	}
	_, err := b.JoinByInvite(ctx, byRemoved, removed.ID)
	wantCode(t, err, winnow.CodeGone)
	_, err = b.JoinByInvite(ctx, byDemoted, demoted.ID)
	wantCode(t, err, winnow.CodeGone)
	if _, err := b.Invite(ctx, byAdmin); err != nil {
		t.Errorf("an invitation of somebody else: %v", err)
	}
}

func TestInvites(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 0, nil)
	invite := func(email string, role winnow.Role) string {
		t.Helper()
		token, err := b.CreateInvite(ctx, b.admin.ID, winnow.Invite{
			ProjectID: b.project, Email: email, Role: role, ExpiresAt: b.clock.Now().Add(7 * 24 * time.Hour),
		})
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	first := invite("new@example.org", winnow.RoleViewer)
	token := invite("New@Example.org", winnow.RoleAnnotator) // replaces the first
	_, err := b.Invite(ctx, first)
	wantCode(t, err, winnow.CodeNotFound)
	want := winnow.Invite{ProjectID: b.project, Email: "new@example.org", Role: winnow.RoleAnnotator, ExpiresAt: b.clock.Now().Add(7 * 24 * time.Hour)}
	got, err := b.Invite(ctx, token)
	if err != nil {
		t.Fatal(err)
	}
	want.ID = got.ID
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Error(diff)
	}
	open, err := b.Invites(ctx, b.project)
	if diff := cmp.Diff([]winnow.Invite{want}, open); diff != "" || err != nil {
		t.Errorf("%v: %s", err, diff)
	}
	user, err := b.AcceptInvite(ctx, token, "New", "hash")
	if err != nil {
		t.Fatal(err)
	}
	if role, err := b.Role(ctx, b.project, winnow.User{ID: user}); role != winnow.RoleAnnotator || err != nil {
		t.Errorf("the new member is %q, %v", role, err)
	}
	_, err = b.AcceptInvite(ctx, token, "New", "hash")
	wantCode(t, err, winnow.CodeGone)

	// A link must not open an account that exists: its owner signs in first.
	token = invite(b.admin.Email, winnow.RoleViewer)
	_, err = b.AcceptInvite(ctx, token, "Taken over", "hash")
	wantCode(t, err, winnow.CodeConflict)
	if project, err := b.JoinByInvite(ctx, token, b.admin.ID); project != b.project || err != nil {
		t.Errorf("joined %d, %v", project, err)
	}
	if role, err := b.Role(ctx, b.project, b.admin); role != winnow.RoleAdmin || err != nil {
		t.Errorf("an invitation to less made the admin %q, %v", role, err)
	}
	regretted := invite("wrong@example.org", winnow.RoleAdmin)
	if open, err = b.Invites(ctx, b.project); len(open) != 1 || err != nil {
		t.Fatalf("open invitations: %v, %v", open, err)
	}
	wantCode(t, b.RevokeInvite(ctx, b.admin.ID, b.project+1, open[0].ID), winnow.CodeNotFound)
	if err := b.RevokeInvite(ctx, b.admin.ID, b.project, open[0].ID); err != nil {
		t.Fatal(err)
	}
	wantCode(t, b.RevokeInvite(ctx, b.admin.ID, b.project, open[0].ID), winnow.CodeNotFound)
	_, err = b.AcceptInvite(ctx, regretted, "Wrong", "hash")
	wantCode(t, err, winnow.CodeGone)
	if _, err := b.Invite(ctx, invite("wrong@example.org", winnow.RoleViewer)); err != nil {
		t.Errorf("inviting the same address again: %v", err)
	}
	late := invite("late@example.org", winnow.RoleViewer)
	b.clock.Advance(8 * 24 * time.Hour)
	_, err = b.AcceptInvite(ctx, late, "Late", "hash")
	wantCode(t, err, winnow.CodeGone)
	if open, err := b.Invites(ctx, b.project); len(open) != 0 || err != nil {
		t.Errorf("open invitations: %v, %v", open, err)
	}
	_, err = b.CreateInvite(ctx, b.admin.ID, winnow.Invite{ProjectID: 1e9, Email: "a@b.org", Role: winnow.RoleViewer})
	wantCode(t, err, winnow.CodeNotFound)
	_, err = b.CreateInvite(ctx, b.admin.ID, winnow.Invite{ProjectID: b.project, Email: "a@b.org", Role: "owner"})
	wantCode(t, err, winnow.CodeInvalid)
}

func TestTokens(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 0, nil)
	secret, err := b.CreateToken(ctx, winnow.Token{ProjectID: b.project, UserID: b.admin.ID, Name: " export ", ExpiresAt: b.clock.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(secret, "winnow_") {
		t.Errorf("the secret %q does not say what it is", secret)
	}
	token, user, err := b.UserByToken(ctx, secret)
	if err != nil || token.Name != "export" || token.ProjectID != b.project || user.Email != b.admin.Email {
		t.Errorf("%+v of %+v, %v", token, user, err)
	}
	tokens, err := b.Tokens(ctx, b.project)
	if err != nil || len(tokens) != 1 || !tokens[0].LastUsed.Equal(b.clock.Now()) {
		t.Errorf("%+v, %v", tokens, err)
	}
	for _, bad := range []string{"", "winnow_", secret + "x"} {
		_, _, err = b.UserByToken(ctx, bad)
		wantCode(t, err, winnow.CodeUnauthenticated)
	}
	wantCode(t, b.RevokeToken(ctx, b.admin.ID, b.project+1, token.ID), winnow.CodeNotFound)
	if err := b.RevokeToken(ctx, b.admin.ID, b.project, token.ID); err != nil {
		t.Fatal(err)
	}
	_, _, err = b.UserByToken(ctx, secret)
	wantCode(t, err, winnow.CodeUnauthenticated)
	secret, err = b.CreateToken(ctx, winnow.Token{ProjectID: b.project, UserID: b.admin.ID, Name: "short", ExpiresAt: b.clock.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(time.Hour)
	_, _, err = b.UserByToken(ctx, secret)
	wantCode(t, err, winnow.CodeUnauthenticated)
	for _, bad := range []winnow.Token{
		{ProjectID: b.project, UserID: b.admin.ID, Name: "", ExpiresAt: b.clock.Now().Add(time.Hour)},
		{ProjectID: b.project, UserID: b.admin.ID, Name: "past", ExpiresAt: b.clock.Now()},
	} {
		_, err = b.CreateToken(ctx, bad)
		wantCode(t, err, winnow.CodeInvalid)
	}
}

func TestProjects(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 5, nil)
	bob := dbtest.User(t, b.Store, "bob")
	hidden := dbtest.Project(t, b.Store, bob.ID, dbtest.Settings(), 2, 0)
	round := b.open()

	list, next, err := b.Projects(ctx, b.admin, winnow.Page{})
	if err != nil || len(list) != 1 || next != "" {
		t.Fatalf("the admin sees %d projects, %v", len(list), err)
	}
	if p := list[0]; p.ID != b.project || p.Role != winnow.RoleAdmin || p.Latest == nil || p.Latest.ID != round.ID || len(p.Classes) != 3 || p.Counts.Pool != 5 {
		t.Errorf("%+v", p)
	}
	list, next, err = b.Projects(ctx, winnow.User{SiteAdmin: true}, winnow.Page{Limit: 1})
	if err != nil || len(list) != 1 || list[0].ID != hidden.ID || list[0].Latest != nil || next == "" {
		t.Errorf("a site admin's first page: %+v, %q, %v", list, next, err)
	}
	list, next, err = b.Projects(ctx, winnow.User{SiteAdmin: true}, winnow.Page{Limit: 1, After: next})
	if err != nil || len(list) != 1 || list[0].ID != b.project || next != "" {
		t.Errorf("a site admin's second page: %+v, %q, %v", list, next, err)
	}

	p, err := b.Project(ctx, b.project)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{p.Name, strings.ToUpper(p.Name), "1"} {
		if found, err := b.FindProject(ctx, name); err != nil || found.ID != b.project {
			t.Errorf("%q finds %v, %v", name, found, err)
		}
	}
	_, err = b.FindProject(ctx, "nothing")
	wantCode(t, err, winnow.CodeNotFound)
	_, err = b.CreateProject(ctx, b.admin.ID, &winnow.Project{Name: strings.ToUpper(p.Name), Classes: p.Classes, Settings: p.Settings})
	wantCode(t, err, winnow.CodeConflict)
	_, err = b.CreateProject(ctx, b.admin.ID, &winnow.Project{Name: "x", Settings: p.Settings})
	wantCode(t, err, winnow.CodeInvalid)
}

func TestUpdateProject(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 8, nil)
	update := func(change func(p *winnow.Project), names ...string) error {
		t.Helper()
		p, err := b.Project(ctx, b.project)
		if err != nil {
			t.Fatal(err)
		}
		if names != nil {
			if p.Classes, err = winnow.NewClasses(names); err != nil {
				t.Fatal(err)
			}
		}
		if change != nil {
			change(p)
		}
		return b.UpdateProject(ctx, b.admin.ID, p)
	}
	check := func(version int, names ...string) {
		t.Helper()
		p, err := b.Project(ctx, b.project)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range p.Classes {
			got = append(got, c.Name)
		}
		if diff := cmp.Diff(names, got); diff != "" || p.ClassVersion != version {
			t.Errorf("class version %d, want %d: %s", p.ClassVersion, version, diff)
		}
	}

	// Without labels, everything goes, even names that change places.
	if err := update(nil, "c1", "c0"); err != nil {
		t.Fatal(err)
	}
	check(1, "c1", "c0")
	if err := update(nil, "c1", "c0", "new"); err != nil {
		t.Fatal(err)
	}
	check(2, "c1", "c0", "new")

	b.open()
	wantCode(t, update(nil, "c0", "c1", "new"), winnow.CodeConflict) // a round is open
	b.decide(b.admin.ID, decision(b.claim(b.admin.ID, 1)[0].ID, winnow.VerdictKnown, 2, "d"))
	if _, err := b.CloseRound(ctx, b.admin.ID, b.project, 0); err != nil {
		t.Fatal(err)
	}
	wantCode(t, update(nil, "c1", "c0"), winnow.CodeConflict)
	wantCode(t, update(nil, "c1", "c0", "renamed"), winnow.CodeConflict)
	check(2, "c1", "c0", "new")
	if err := update(nil, "c1", "c0", "new", "added", "also added"); err != nil {
		t.Fatal(err)
	}
	check(3, "c1", "c0", "new", "added", "also added")
	err := update(func(p *winnow.Project) {
		p.Name, p.Instructions, p.Settings.Budget = "New name", "Look closely.", 7
		p.Classes[0].Colour = "#123456"
	})
	if err != nil {
		t.Fatal(err)
	}
	check(3, "c1", "c0", "new", "added", "also added")
	p, err := b.FindProject(ctx, "new name")
	if err != nil || p.Instructions != "Look closely." || p.Settings.Budget != 7 || p.Classes[0].Colour != "#123456" {
		t.Errorf("%+v, %v", p, err)
	}
	wantCode(t, update(func(p *winnow.Project) { p.Settings.Budget = 0 }), winnow.CodeInvalid)
	wantCode(t, update(func(p *winnow.Project) { p.ID = 1e9 }), winnow.CodeNotFound)
	dbtest.Project(t, b.Store, b.annotator("bob"), dbtest.Settings(), 1, 0)
	wantCode(t, update(func(p *winnow.Project) { p.Name = "Project of TestUpdateProject2" }), winnow.CodeConflict)
	b.checkInvariants()
}

func TestAdminWritesAreAudited(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 8, nil)
	b.annotator("bob")
	b.open()
	if _, err := b.CloseRound(ctx, b.admin.ID, b.project, 0); err != nil {
		t.Fatal(err)
	}
	rows, err := b.Pool().Query(ctx, `SELECT action FROM audit_events WHERE project_id = $1 ORDER BY id`, b.project)
	if err != nil {
		t.Fatal(err)
	}
	var actions []string
	for rows.Next() {
		var action string
		if err := rows.Scan(&action); err != nil {
			t.Fatal(err)
		}
		actions = append(actions, action)
	}
	if diff := cmp.Diff([]string{"project.create", "invite.create", "invite.accept", "round.start", "round.close"}, actions); diff != "" {
		t.Error(diff)
	}
}

func TestDeleteExpiredSessions(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 0, nil)
	now := b.clock.Now()
	for token, expiry := range map[string]time.Time{"over": now.Add(-time.Second), "good": now.Add(time.Second)} {
		if _, err := b.Pool().Exec(ctx, `INSERT INTO sessions (token, data, expiry) VALUES ($1, '', $2)`, token, expiry); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.DeleteExpiredSessions(ctx); err != nil {
		t.Fatal(err)
	}
	var left string
	if err := b.Pool().QueryRow(ctx, `SELECT string_agg(token, ',') FROM sessions`).Scan(&left); err != nil || left != "good" {
		t.Errorf("left %q, %v; want good", left, err)
	}
}

// A name comes from a form or a flag, and is shown to everybody in the project.
func TestNamesOfPeopleAreChecked(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 1, nil)
	token, err := b.CreateInvite(ctx, b.admin.ID, winnow.Invite{ProjectID: b.project, Email: "new@example.org", Role: winnow.RoleAnnotator, ExpiresAt: b.clock.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{strings.Repeat("x", 10_000), "a\x00b", "a\nb", "\xff"} {
		_, err := b.CreateUser(ctx, winnow.User{Email: "other@example.org", Name: name}, "")
		wantCode(t, err, winnow.CodeInvalid)
		_, err = b.AcceptInvite(ctx, token, name, "hash")
		wantCode(t, err, winnow.CodeInvalid)
	}
	if _, err := b.AcceptInvite(ctx, token, " <b>New</b> ", "hash"); err != nil {
		t.Errorf("the invitation is spent, or markup is refused: %v", err)
	}
	if u, _, err := b.UserByEmail(ctx, "new@example.org"); err != nil || u.Name != "<b>New</b>" {
		t.Errorf("the name is %q, %v", u.Name, err)
	}
}
